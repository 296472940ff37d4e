/* The operators of the domain "nmt", version 1: from the tensors of a call to a kernel.
 *
 * Everything runs on the calling thread. D = H * K: H heads of K features, N sentences, W queries
 * (beams) of each, R = N * W rows; `?` marks what a graph may leave out.
 *
 *   CrossAttention       num_heads; query (N, W, D), key and value (N, H, S, K), lengths (N,),
 *                        scale, zero_point -> context (N, W, D), weights? (R, H, S)
 *   CachedSelfAttention  num_heads; qkv (N, W, 3 * D), past_key and past_value (R, H, T, K),
 *                        positions (R,), scale, zero_point
 *                        -> context (N, W, D), next_key and next_value (R, H, T, K)
 *   SelfAttention        num_heads; qkv (N, S, 3 * D), lengths (N,), scale, zero_point
 *                        -> context (N, S, D)
 *   AddNormQuantize      epsilon; a and b (..., D), gamma and beta (D,), scale, zero_point
 *                        -> sum_norm? (..., D), quantized (..., D)
 *   ListCandidates       common (R, C), products (N, W, L), scales and biases (N, 1, L),
 *                        num_candidates (1,) -> log_probs and places (R, num_candidates)
 *   EmbedQuantize        table (V, D), scales (V, 1), positions (P, D), tokens (N, W), scale,
 *                        zero_point, places? (R,) -> hidden and quantized (N, W, D)
 *   SplitHeads           num_heads; packed (N, S, 2 * D) -> keys and values (N, H, S, K)
 */
#ifndef NMT_OPERATORS_H
#define NMT_OPERATORS_H

#include "call.h"

/* Of a node; 0 where its operator has no such attribute. */
typedef struct {
  int64_t num_heads;
  float epsilon;
} Attributes;

void run_cross_attention(const Attributes *attributes, Call *call);
void run_cached_self_attention(const Attributes *attributes, Call *call);
void run_self_attention(const Attributes *attributes, Call *call);
void run_add_norm_quantize(const Attributes *attributes, Call *call);
void run_list_candidates(const Attributes *attributes, Call *call);
void run_embed_quantize(const Attributes *attributes, Call *call);
void run_split_heads(const Attributes *attributes, Call *call);

#endif
