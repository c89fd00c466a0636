/*
 * gp_topo_names.c - PCI addresses, UUIDs and path types as text, and back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "planner/gp_topo.h"

#include <ctype.h>
#include <string.h>

const char *gp_topo_type_name(uint32_t type)
{
    static const char *const names[] = {"gpu", "nvlink", "nvswitch", "pix", "pxb",
                                        "phb", "sys",    "host",     "net"};

    return type < GP_TOPO_TYPE_COUNT ? names[type] : "?";
}

char *gp_topo_pci_text(uint64_t pci, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%04x:%02x:%02x.%x", (uint32_t) (pci >> 16),
             (uint32_t) (pci >> 8 & 0xff), (uint32_t) (pci >> 3 & 0x1f), (uint32_t) (pci & 7));
    return text;
}

/* Hexadecimal digits up to the separator; 0 when there are none, or more than `most`. */
static int hex_of(const char **text, char separator, uint32_t most, uint64_t *number)
{
    uint32_t digits = 0;

    *number = 0;
    for (; isxdigit((unsigned char) **text); (*text)++) {
        char c = (char) tolower((unsigned char) **text);

        if (++digits > most) {
            return 0;
        }
        *number = *number << 4 | (uint64_t) (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (0 == digits || separator != **text) {
        return 0;
    }
    *text += '\0' != separator;
    return 1;
}

int gp_topo_pci_of(const char *text, uint64_t *pci)
{
    uint64_t domain, bus, device, function;

    if (!hex_of(&text, ':', 8, &domain) || !hex_of(&text, ':', 2, &bus)
        || !hex_of(&text, '.', 2, &device) || !hex_of(&text, '\0', 1, &function)
        || device > 0x1f || function > 7) {
        return 0;
    }
    *pci = domain << 16 | bus << 8 | device << 3 | function;
    return 1;
}

char *gp_topo_uuid_text(const uint8_t *uuid, char *text, size_t text_bytes)
{
    size_t at = (size_t) snprintf(text, text_bytes, "GPU-");

    for (uint32_t i = 0; i < GP_TOPO_UUID_BYTES && at < text_bytes; i++) {
        at += (size_t) snprintf(text + at, text_bytes - at, "%s%02x",
                                4 == i || 6 == i || 8 == i || 10 == i ? "-" : "", uuid[i]);
    }
    return text;
}

int gp_topo_uuid_of(const char *text, uint8_t *uuid)
{
    static const uint8_t digits[] = {8, 4, 4, 4, 12};
    uint32_t at = 0;

    if (0 == strncmp(text, "GPU-", 4) || 0 == strncmp(text, "MIG-", 4)) {
        text += 4;
    }
    for (uint32_t part = 0; part < 5; part++) {
        const char *begin = text;
        uint64_t number;

        if (!hex_of(&text, 4 == part ? '\0' : '-', digits[part], &number)
            || (size_t) (text - begin) != digits[part] + (size_t) (4 != part)) {
            return 0;
        }
        for (uint32_t i = digits[part] / 2u; i > 0; i--) {
            uuid[at++] = (uint8_t) (number >> (8 * (i - 1)));
        }
    }
    return 1;
}
