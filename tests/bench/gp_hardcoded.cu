/*
 * gp_hardcoded.cu - a ring over LL that knows nothing else: what interpretation is compared with.
 *
 * For bench_gpu_step only. One block, float sum, whole 8-byte words; the same lines, flags, credits and
 * heads as the kernels of device/cuda, the algorithm in the code.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "device/proto/gp_chunk.h"
#include "device/proto/gp_fifo.h"

typedef struct gp_hard_args {
    gp_conn_t recv;      /* from the rank before */
    gp_conn_t send;      /* to the rank behind */
    const float *in;
    float *out;
    uint64_t loops;
    uint32_t chunk_elems; /* even */
    uint32_t rank;
    uint32_t n_ranks;
    uint32_t reserved;
} gp_hard_args_t;

extern "C" __global__ void __launch_bounds__(1024, 1) gp_hard_ring_ll(gp_hard_args_t a)
{
    uint32_t words = a.chunk_elems / 2;
    uint32_t n = a.n_ranks;
    uint64_t recv_step = a.recv.step;
    uint64_t send_step = a.send.step;
    uint64_t head = a.send.seen;

    for (uint64_t loop = 0; loop < a.loops; ++loop) {
        uint32_t chunk = (a.rank + n - 1) % n;

        for (uint32_t k = 0; k <= 2 * n - 2; ++k) {
            uint64_t at = (loop * n + chunk) * words;
            const uint2 *in = (const uint2 *) a.in + at;
            uint2 *out = (uint2 *) a.out + at;
            uint64_t next = 0;
            int sends = k < 2 * n - 2;

            if (sends && !gp_credit(head, send_step, a.send.n_slots)) {
                next = gp_load_head_u64(a.send.head);
            }
            for (uint32_t w = threadIdx.x; w < words; w += blockDim.x) {
                uint2 v = {0, 0};

                if (k > 0) {
                    uint32_t flag = gp_ll_flag(recv_step);
                    const unsigned char *line = gp_slot_ptr(&a.recv, recv_step) + 16u * w;
                    gp_vec16_t d;

                    do {
                        d = gp_load_relaxed_vec16(line);
                    } while ((uint32_t) (d.w[0] >> 32) != flag
                             || (uint32_t) (d.w[1] >> 32) != flag);
                    v.x = (uint32_t) d.w[0];
                    v.y = (uint32_t) d.w[1];
                }
                if (k <= n - 1) {
                    uint2 own = in[w];

                    v.x = 0 == k ? own.x
                                 : __float_as_uint(__uint_as_float(v.x) + __uint_as_float(own.x));
                    v.y = 0 == k ? own.y
                                 : __float_as_uint(__uint_as_float(v.y) + __uint_as_float(own.y));
                }
                if (k >= n - 1) {
                    out[w] = v;
                }
                if (sends) {
                    uint64_t flag = (uint64_t) gp_ll_flag(send_step) << 32;
                    gp_vec16_t d;

                    head = next > head ? next : head;
                    while (!gp_credit(head, send_step, a.send.n_slots)) {
                        head = gp_load_head_u64(a.send.head);
                    }
                    d.w[0] = v.x | flag;
                    d.w[1] = v.y | flag;
                    gp_store_relaxed_vec16(gp_slot_ptr(&a.send, send_step) + 16u * w, d);
                }
            }
            if (k > 0) {
                __syncthreads();
                if (0 == threadIdx.x) {
                    gp_store_head_u64(a.recv.head, recv_step + 1);
                }
                ++recv_step;
            }
            send_step += sends;
            chunk = 0 == chunk ? n - 1 : chunk - 1;
        }
    }
}
