/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame - what the name of a frame says, and how it is written into a page.
 */
#ifndef STACKTOOLS_FLAME_FRAME_H
#define STACKTOOLS_FLAME_FRAME_H

#include "base/out.h"

/* Each has its own range of colours. The order is known to graph.js. */
enum frame_class {
	FRAME_USER,
	FRAME_KERNEL, /* ends in _[k] */
	FRAME_SCRIPT, /* ends in _[j]: of a script, or compiled at run time */
	FRAME_INLINED, /* ends in _[i] */
	FRAME_WAKER, /* "--", and all frames below it */
	FRAME_STATE, /* [runnable], [preempted] */
	FRAME_MARK, /* "-" between user and kernel frames */
	FRAME_BLOCKED, /* [blocked] */
	FRAME_ON_CPU, /* [on-CPU] */
	FRAME_CLASSES,
};

enum frame_class frame_class(const char *name, size_t len);
bool frame_is_marked(const char *name, size_t len); /* ends in one of the three marks, of four bytes */

/* One of the FRAME_TONES tones within the colours of a class, always the same for a name. */
#define FRAME_TONES 32
unsigned int frame_tone(const char *name, size_t len);

/*
 * Put a name as text inside a JSON string, or inside XML or HTML, where it may
 * be an attribute, too. A byte that is not printable UTF-8, and each byte of a
 * control of the direction of text, becomes \xNN. The characters that mean
 * something to HTML are escaped in JSON as well, since it is inside a page.
 */
void frame_put_json(struct out *o, const char *name, size_t len);
void frame_put_xml(struct out *o, const char *name, size_t len);

/* The length of the beginning of NAME that takes at most COLUMNS characters when it is shown. */
size_t frame_fit(const char *name, size_t len, size_t columns);

#endif
