/* The keys and values of a memory, from side by side in each place to each head's by themselves. */
#ifndef NMT_HEADS_H
#define NMT_HEADS_H

#include <stddef.h>

typedef struct {
  size_t num_sentences, num_places, num_heads, head_size;
  const float *packed; /* (N, S, 2 * H * K): keys, values */
  float *keys;         /* (N, H, S, K) */
  float *values;       /* (N, H, S, K) */
} SplitHeads;

void split_heads(const SplitHeads *split);

#endif
