/* Scaled dot-product attention (Vaswani et al. 2017, section 3.2) whose result is quantised.
 *
 * Each query is computed by itself, in an order that only its own number of keys decides: neither
 * its neighbours nor the padding change a bit of it.
 */
#ifndef NMT_ATTENTION_H
#define NMT_ATTENTION_H

#include "vector.h"

/* Whose scores fit in the scratch memory of one query. */
#define MAX_KEYS 8192

/* W queries of each of N sentences on its own S places. */
typedef struct {
  size_t num_sentences, num_queries, num_heads, num_places, head_size;
  const float *query;      /* (N, W, H * K) */
  const float *key;        /* (N, H, S, K) */
  const float *value;      /* (N, H, S, K) */
  const int32_t *lengths;  /* (N,), 1 to S */
  Quantizer quantizer;
  uint8_t *context;        /* (N, W, H * K) */
  float *weights;          /* (N * W, H, S), or NULL */
} CrossAttention;

/* One query of each of R rows on its own past of at most T places, the query's own included. */
typedef struct {
  size_t num_rows, num_heads, num_places, head_size;
  const float *qkv;          /* (R, 3 * H * K): queries, keys, values */
  float *key;                /* (R, H, T, K), written at the row's position */
  float *value;              /* (R, H, T, K), likewise */
  const int32_t *positions;  /* (R,), 0 to T - 1 */
  Quantizer quantizer;
  uint8_t *context;          /* (R, H * K) */
} CachedSelfAttention;

/* Every place of each of N sentences on all of the sentence's. */
typedef struct {
  size_t num_sentences, num_heads, num_places, head_size;
  const float *qkv;        /* (N, S, 3 * H * K): queries, keys, values */
  const int32_t *lengths;  /* (N,), 1 to S */
  Quantizer quantizer;
  uint8_t *context;        /* (N, S, H * K) */
} SelfAttention;

void attend_source(const CrossAttention *attention);
void attend_past(const CachedSelfAttention *attention);
void attend_self(const SelfAttention *attention);

/* The same, of any head size, but slower for long sentences. */
void attend_self_singly(const SelfAttention *attention);

#endif
