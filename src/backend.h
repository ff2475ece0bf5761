/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract between the core and a backend. A backend is a const table of functions. One linked in is found in the
 * registry's table; one in a plug-in is returned by its single exported symbol, epigemm_backend, after the core has
 * handed over its services. A plug-in calls nothing of the core by name.
 *
 * A lowering is one way to carry a canonical problem out; a variant is a lowering with its parameters, named numbers such
 * as threads=4, so that the core can print it as a pin, parse it back, time it and keep it as wisdom without knowing what
 * it means. All functions may be called from several threads at once. */
#ifndef EPG_BACKEND_H
#define EPG_BACKEND_H

#include "problem.h"

enum { EPG_BACKEND_ABI = 1, EPG_NPARAMS = 12, EPG_MAX_VARIANTS = 64, EPG_WHY_NBYTES = 256 };

/* What the core gives a backend. fail and log as in log.h; alloc takes from the context's allocator. */
typedef struct epg_services {
	uint32_t abi;
	uint32_t nbytes;
	epg_status (*fail)(epg_status status, const char *format, ...);
	void (*log)(const void *log, int32_t level, const char *format, ...);
	const char *(*last_error)(void);
} epg_services;

/* What a backend's context is made from. The pointers hold as long as the backend's context. */
typedef struct epg_backend_options {
	int32_t device, threads;
	const epg_allocator *allocator; /* never NULL; its functions may be */
	const void *log;
} epg_backend_options;

typedef struct epg_variant {
	int32_t lowering;              /* index into the backend's lowerings */
	int64_t param[EPG_NPARAMS];    /* meaning and count: lowerings[].param_names */
	double cost_s;                 /* estimated seconds of one execution */
	size_t workspace_nbytes;
} epg_variant;

typedef struct epg_lowering {
	const char *name;
	const char *param_names[EPG_NPARAMS + 1]; /* NULL-terminated */
} epg_lowering;

/* The pointers of one execution, already checked and in canonical form. alpha and beta are the values that count. With
 * EPG_SCALARS_ON_DEVICE on a device they are in operands instead. */
typedef struct epg_call {
	epg_operands x;
	double alpha[2], beta[2];
	void *stream;
} epg_call;

typedef struct epg_plan_info_backend {
	size_t workspace_nbytes, workspace_alignment;
	int32_t launches;
} epg_plan_info_backend;

typedef struct epg_backend {
	uint32_t abi;
	uint32_t nbytes;
	const char *name;
	bool host_memory; /* its memory is the host's, so scalars "on the device" can be read at once */
	const epg_lowering *lowerings;
	int32_t nlowerings;

	/* Can it be used here? Writes what was found or why not. */
	bool (*probe)(char *text, size_t text_nbytes);

	epg_status (*context_create)(const epg_backend_options *options, void **context);
	void (*context_destroy)(void *context);
	void (*context_info)(const void *context, epg_context_info *info);
	/* Version of the product's library and the device: wisdom from another stamp is refused. One word. */
	void (*stamp)(const void *context, char *text, size_t text_nbytes);

	/* Usable at once, and when everything has been waited for. */
	epg_status (*alloc)(void *context, size_t nbytes, void **ptr);
	void (*release)(void *context, void *ptr);
	/* The same in the order of a stream; both may be NULL, where there are no streams. */
	epg_status (*alloc_ordered)(void *context, size_t nbytes, void *stream, void **ptr);
	void (*release_ordered)(void *context, void *ptr, void *stream);
	epg_status (*upload)(void *context, void *to, const void *from_host, size_t nbytes, void *stream);
	epg_status (*download)(void *context, void *to_host, const void *from, size_t nbytes, void *stream);
	epg_status (*synchronize)(void *context, void *stream);

	/* Can this lowering carry the problem out? Pure; false with the reason. */
	bool (*supports)(const void *context, const epg_problem *problem, int32_t lowering, char why[EPG_WHY_NBYTES]);
	/* The variants of a supported lowering worth trying at this rigor, the best estimate first; returns their number, and why when
	 * it is 0 (a vendor's library may have nothing for a problem that looks supported). */
	int32_t (*variants)(const void *context, const epg_problem *problem, int32_t lowering, int32_t rigor, epg_variant *variants, int32_t capacity,
		char why[EPG_WHY_NBYTES]);
	/* Checks a variant that came from a text, of a supported lowering, and fills its cost and workspace. */
	bool (*accepts)(const void *context, const epg_problem *problem, epg_variant *variant, char why[EPG_WHY_NBYTES]);

	/* own_workspace: the plan brings the memory that an execution without a caller's workspace uses; without it every execution
	 * gets one. plan_destroy does not wait for executions under way unless the plan owns a workspace. */
	epg_status (*plan_create)(void *context, const epg_problem *problem, const epg_variant *variant, bool own_workspace, void **plan);
	void (*plan_destroy)(void *plan);
	void (*plan_info)(const void *plan, epg_plan_info_backend *info);
	void (*plan_explain)(const void *plan, char *text, size_t text_nbytes);
	epg_status (*execute)(const void *plan, const epg_call *call);

	/* Seconds of one of so many calls that follow each other on the device, its caches cold before the first; the outputs are written.
	 * May be NULL: then the core takes the time from execute to the end of synchronize. */
	epg_status (*time)(const void *plan, const epg_call *call, int32_t calls, double *seconds);

	/* Views have the same rows and cols; the op of the source is in its view. */
	epg_status (*convert)(void *context, int64_t batch, const epg_view *from_view, const void *from, const epg_view *to_view, void *to,
		const void *scale, void *amax, void *stream);
} epg_backend;

/* The linked-in backend, and the type of a plug-in's symbol EPG_BACKEND_SYMBOL: it returns the table, or NULL when the services are of
 * another ABI than it was built for. The table's abi and nbytes must be the core's own. */
extern const epg_backend epg_cpu_backend;
typedef const epg_backend *(*epg_backend_entry)(const epg_services *services);
#define EPG_BACKEND_SYMBOL "epigemm_backend"

#endif
