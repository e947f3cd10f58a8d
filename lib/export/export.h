/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * export - a recording in the formats of other people's viewers and servers.
 *
 * Each function puts the whole of P into OUT, and may add texts to P. 0 or -errno with the message;
 * out_flush() reports failed writes.
 */
#ifndef STACKTOOLS_EXPORT_EXPORT_H
#define STACKTOOLS_EXPORT_EXPORT_H

#include "base/out.h"
#include "export/profile.h"

/* pprof's profile.proto, compressed with gzip. */
int export_pprof(struct profile *p, struct out *out, struct err *e);

/* The file format of speedscope. */
int export_speedscope(struct profile *p, struct out *out, struct err *e);

/* The processed profile format of the Firefox Profiler. */
int export_firefox(struct profile *p, struct out *out, struct err *e);

/*
 * Perfetto's trace, of those waits that are a record each; *SUMS (may be NULL) is how many others are not in
 * it.
 */
int export_perfetto(struct profile *p, struct out *out, uint64_t *sums, struct err *e);

/* OpenTelemetry's profiles, as a client sends them (ExportProfilesServiceRequest, v1development). */
int export_otlp(struct profile *p, struct out *out, struct err *e);

#endif
