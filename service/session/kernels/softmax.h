/* The softmax of all attention: a row of scores, taken to powers in its place. */
#ifndef NMT_SOFTMAX_H
#define NMT_SOFTMAX_H

#include "vector.h"

/* Scores become exponentials of scale * (score - highest); gives one over their sum. Whole vectors
 * are read and written: the last has to be filled up with minus infinity. */
INLINE float exponentiate(float *scores, size_t count, float scale) {
  Floats best = broadcast(-INFINITY), total = {0};
  for (size_t start = 0; start < count; start += WIDTH)
    best = larger(load(scores + start, WIDTH), best);
  float highest = largest(best);
  for (size_t start = 0; start < count; start += WIDTH) {
    Floats powers = exp_of_negative((load(scores + start, WIDTH) - highest) * scale);
    store(scores + start, powers, WIDTH);
    total += powers;
  }
  return 1.0f / sum(total);
}

#endif
