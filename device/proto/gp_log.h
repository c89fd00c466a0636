/*
 * gp_log.h - where the layers below the component say what went wrong.
 *
 * Whoever first detects an error logs it once; callers only propagate. The component installs a sink
 * that ends in Open MPI's output; without one, errors and warnings go to stderr.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GP_LOG_H
#define GP_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gp_log_level { GP_LOG_ERROR, GP_LOG_WARN, GP_LOG_INFO, GP_LOG_DEBUG } gp_log_level_t;

typedef void (*gp_log_sink_t)(gp_log_level_t level, const char *text);

/* NULL restores the default sink. */
void gp_log_set_sink(gp_log_sink_t sink);

/* printf-like, one line without the newline; longer than 1,023 bytes is cut. */
void gp_log(gp_log_level_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif /* GP_LOG_H */
