#include "heads.h"

#include <string.h>

/* One head of one sentence: rows of `size` that lie `stride` apart come together. */
static void gather(const float *from, size_t stride, size_t count, size_t size, float *to) {
  for (size_t i = 0; i < count; i++) memcpy(to + i * size, from + i * stride, size * sizeof *to);
}

void split_heads(const SplitHeads *s) {
  size_t features = s->num_heads * s->head_size, head_numbers = s->num_places * s->head_size;
  for (size_t index = 0; index < s->num_sentences * s->num_heads; index++) {
    size_t sentence = index / s->num_heads, head = index % s->num_heads;
    const float *from =
        s->packed + sentence * s->num_places * 2 * features + head * s->head_size;
    float *keys = s->keys + index * head_numbers, *values = s->values + index * head_numbers;
    gather(from, 2 * features, s->num_places, s->head_size, keys);
    gather(from + features, 2 * features, s->num_places, s->head_size, values);
  }
}
