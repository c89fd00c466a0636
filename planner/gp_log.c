/*
 * gp_log.c - the log sink of the layers below the component.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/proto/gp_log.h"

#include <stdarg.h>
#include <stdio.h>

static void default_sink(gp_log_level_t level, const char *text)
{
    if (level <= GP_LOG_WARN) {
        fprintf(stderr, "gpuproto: %s: %s\n", GP_LOG_ERROR == level ? "error" : "warning", text);
    }
}

static gp_log_sink_t gp_log_sink = default_sink;

void gp_log_set_sink(gp_log_sink_t sink)
{
    gp_log_sink = NULL != sink ? sink : default_sink;
}

void gp_log(gp_log_level_t level, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    gp_log_sink(level, text);
}
