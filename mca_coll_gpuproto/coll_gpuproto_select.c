/*
 * coll_gpuproto_select.c - completing an include list that names gpuproto but cannot work by itself.
 *
 * Open MPI needs every collective of a communicator to be there, and `--mca coll gpuproto` leaves out
 * all other components. At open time the filter has already run, so what is missing is taken from the
 * static list or the repository of dynamic ones, registered, opened and put into the framework's list.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "mca_coll_gpuproto/coll_gpuproto.h"

#include <string.h>

#include "opal/class/opal_list.h"
#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/mca/base/mca_base_framework.h"

static const char *const needed[] = {"self", "basic", "libnbc", "inter", "tuned",
#if OMPI_MAJOR_VERSION >= 5
                                     "ftagree",
#endif
                                     NULL};

static bool list_has(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; NULL != at && '\0' != *at;) {
        size_t n = strcspn(at, ",");

        if (n == len && 0 == strncmp(at, name, n)) {
            return true;
        }
        at += n;
        at += ',' == *at;
    }
    return false;
}

bool mca_coll_gpuproto_is_named(void)
{
    const char *list = ompi_coll_base_framework.framework_selection;

    return NULL != list && '^' != list[0] && list_has(list, "gpuproto");
}

static bool is_there(const char *name)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_coll_base_framework.framework_components,
                      mca_base_component_list_item_t) {
        if (0 == strcmp(item->cli_component->mca_component_name, name)) {
            return true;
        }
    }
    return false;
}

/*
 * Register and open a component, then put it in front: the loop that is opening the framework's
 * components right now must not come by it again. The item is consumed.
 */
static void take(mca_base_component_list_item_t *item)
{
    const mca_base_component_t *component = item->cli_component;

    if (NULL != component->mca_register_component_params
        && OMPI_SUCCESS != component->mca_register_component_params()) {
        OBJ_RELEASE(item);
    } else if (NULL != component->mca_open_component
               && OMPI_SUCCESS != component->mca_open_component()) {
        OBJ_RELEASE(item);
    } else {
        opal_list_prepend(&ompi_coll_base_framework.framework_components, &item->super);
    }
}

static mca_base_component_list_item_t *find_static(const char *name)
{
    const mca_base_component_t **list = ompi_coll_base_framework.framework_static_components;

    for (; NULL != list && NULL != *list; list++) {
        if (0 == strcmp((*list)->mca_component_name, name)) {
            mca_base_component_list_item_t *item = OBJ_NEW(mca_base_component_list_item_t);

            if (NULL != item) {
                item->cli_component = *list;
            }
            return item;
        }
    }
    return NULL;
}

/* Load a dynamic component; the repository appends it to the framework's list, from where it is taken. */
static mca_base_component_list_item_t *load_dynamic(const char *name)
{
    mca_base_framework_t *framework = &ompi_coll_base_framework;
    mca_base_component_list_item_t *item, *next;
    mca_base_component_repository_item_t *ri;
    opal_list_t *items;

    if (OPAL_SUCCESS != mca_base_component_repository_get_components(framework, &items)) {
        return NULL;
    }
    OPAL_LIST_FOREACH(ri, items, mca_base_component_repository_item_t) {
        if (0 != strcmp(ri->ri_name, name)) {
            continue;
        }
        if (OPAL_SUCCESS != mca_base_component_repository_open(framework, ri)) {
            return NULL;
        }
        OPAL_LIST_FOREACH_SAFE(item, next, &framework->framework_components,
                               mca_base_component_list_item_t) {
            if (0 == strcmp(item->cli_component->mca_component_name, name)) {
                opal_list_remove_item(&framework->framework_components, &item->super);
                return item;
            }
        }
        return NULL;
    }
    return NULL;
}

void mca_coll_gpuproto_complete_selection(void)
{
    const char *list = ompi_coll_base_framework.framework_selection;

    if (!mca_coll_gpuproto_is_named() || (list_has(list, "basic") && list_has(list, "libnbc"))) {
        return;
    }
    for (uint32_t i = 0; NULL != needed[i]; i++) {
        mca_base_component_list_item_t *item;

        if (is_there(needed[i])) {
            continue;
        }
        item = find_static(needed[i]);
        if (NULL == item) {
            item = load_dynamic(needed[i]);
        }
        if (NULL != item) {
            take(item);
        }
    }
}
