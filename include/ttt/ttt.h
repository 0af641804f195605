/* libttt's stable C API. Everything here may be called before cuInit, from any thread, at any time;
   nothing fails. A program needs none of it: LD_PRELOAD=libttt.so is enough. Resolve the functions
   with dlsym(RTLD_DEFAULT, …) so that the program also runs without the library. */
#ifndef TTT_TTT_H
#define TTT_TTT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TTT_VERSION 100 /* 1000 * major + 100 * minor + patch */

typedef struct ttt_status_info {
    size_t size; /* in: sizeof(ttt_status_info) of the caller; fields past it are not written */
    int state; /* 0 not started, 1 running, 2 disabled (by ttt_disable, fork, TTT_MODE=off or exit)
                */
    int tuner_connected; /* 1 while the tuner process answers */
    uint64_t kernels;    /* kernels launched so far that are known to the library */
    uint64_t launches; /* launches counted; concurrent launches of one kernel may be undercounted */
    uint64_t variants_live;    /* launch sites now served by a variant */
    uint64_t variant_launches; /* launches that a variant served */
} ttt_status_info;

/* Version of the loaded library, as TTT_VERSION. */
int ttt_version(void);
/* Puts variants back behind their guards after ttt_disable. */
void ttt_enable(void);
/* From the next launch on every kernel is the program's own. Trials stop. */
void ttt_disable(void);
/* 0 on success, -1 if info is NULL or its size is not one this library knows. */
int ttt_status(ttt_status_info* info);

#ifdef __cplusplus
}
#endif
#endif
