/* SPDX-License-Identifier: Apache-2.0
 *
 * The few elements of SVG that our pictures need, written as they come. Coordinates are pixels from the upper left corner;
 * colours are CSS colours. Write errors are remembered and told by svg_close. */
#ifndef DEMO_SVG_H
#define DEMO_SVG_H

#include <stdint.h>
#include <stdio.h>

typedef struct svg {
	FILE *file;
} svg;

enum { SVG_LEFT = 0, SVG_MIDDLE, SVG_RIGHT };

/* Begins a picture with a white background. Returns 0, with errno set, when the file cannot be written. */
int svg_open(svg *to, const char *path, double width, double height, const char *title);

/* Ends it. Returns 0 when anything could not be written. */
int svg_close(svg *to);

void svg_rect(svg *to, double x, double y, double width, double height, double radius, const char *fill, const char *stroke);
void svg_line(svg *to, double x1, double y1, double x2, double y2, const char *colour, double width);
void svg_circle(svg *to, double x, double y, double radius, const char *fill);

/* A line through n points. */
void svg_polyline(svg *to, int n, const double *x, const double *y, const char *colour, double width);

/* Text in printf's manner, any characters; bold is 0 or 1. */
#if defined(__GNUC__)
__attribute__((format(printf, 8, 9)))
#endif
void svg_text(svg *to, double x, double y, double size, int anchor, int bold, const char *colour, const char *format, ...);

/* A grey picture of rows×cols bytes, 0 as white and 255 as black, in 16 greys, scaled to fit width×height. */
void svg_grey(svg *to, double x, double y, double width, double height, int64_t rows, int64_t cols, const uint8_t *bytes);

#endif
