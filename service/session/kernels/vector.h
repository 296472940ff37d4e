/* Sixteen numbers at a time, in the compiler's own vector types, for processors with AVX-512.
 *
 * A vector of 64 bytes is one register there. Elsewhere GCC keeps it in memory, and onnxruntime's own
 * operators are several times faster: `RegisterCustomOps` then refuses. Every function is inlined
 * into a caller that is marked AVX512. -ffast-math would undo the rounding by a magic number below.
 */
#ifndef NMT_VECTOR_H
#define NMT_VECTOR_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 16
#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define AVX512 __attribute__((target("arch=x86-64-v4")))
#else
#define AVX512
#endif

typedef float Floats __attribute__((vector_size(4 * WIDTH)));
typedef float Floats8 __attribute__((vector_size(32)));
typedef float Floats4 __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(4 * WIDTH)));
typedef int32_t Ints8 __attribute__((vector_size(32)));
typedef int32_t Ints4 __attribute__((vector_size(16)));
typedef int16_t Shorts __attribute__((vector_size(2 * WIDTH)));
typedef uint8_t Bytes __attribute__((vector_size(WIDTH)));

INLINE size_t smaller_size(size_t a, size_t b) { return a < b ? a : b; }

/* How many of `size` numbers a vector holds that begins at `start`. */
INLINE size_t width_at(size_t start, size_t size) {
  return smaller_size(size - start, WIDTH);
}

INLINE Floats broadcast(float value) { return (Floats){0} + value; }

/* The first `width` numbers, then `fill`. A partial vector is rare: it goes through memory, in a
 * function of its own, so that the code around it stays small. */
static __attribute__((noinline, unused)) void pad(float *to, const float *from, size_t width,
                                                  float fill) {
  for (size_t i = 0; i < WIDTH; i++) to[i] = i < width ? from[i] : fill;
}

INLINE Floats load_or(const float *from, size_t width, float fill) {
  Floats vector;
  float padded[WIDTH];
  if (width < WIDTH) {
    pad(padded, from, width, fill);
    from = padded;
  }
  memcpy(&vector, from, sizeof vector);
  return vector;
}

/* The first `width` numbers, then zeros. */
INLINE Floats load(const float *from, size_t width) { return load_or(from, width, 0.0f); }

/* The first `width` integers, then zeros. */
INLINE Floats load_integers(const int32_t *from, size_t width) {
  Ints vector;
  int32_t padded[WIDTH];
  if (width < WIDTH) {
    for (size_t i = 0; i < WIDTH; i++) padded[i] = i < width ? from[i] : 0;
    from = padded;
  }
  memcpy(&vector, from, sizeof vector);
  return __builtin_convertvector(vector, Floats);
}

/* The first `width` bytes as numbers, then zeros. */
INLINE Floats load_bytes(const uint8_t *from, size_t width) {
  Bytes vector;
  uint8_t padded[WIDTH];
  if (width < WIDTH) {
    for (size_t i = 0; i < WIDTH; i++) padded[i] = i < width ? from[i] : 0;
    from = padded;
  }
  memcpy(&vector, from, sizeof vector);
  /* GCC widens by one step at a time; more than one it would take byte by byte. */
  Shorts shorts = __builtin_convertvector(vector, Shorts);
  return __builtin_convertvector(__builtin_convertvector(shorts, Ints), Floats);
}

/* The first `width` numbers of a vector; a whole one goes to memory in one piece. */
INLINE void store(float *to, Floats vector, size_t width) {
  if (width == WIDTH)
    memcpy(to, &vector, sizeof vector);
  else
    for (size_t i = 0; i < width; i++) to[i] = vector[i];
}

INLINE void store_bytes(uint8_t *to, Bytes vector, size_t width) {
  if (width == WIDTH)
    memcpy(to, &vector, sizeof vector);
  else
    for (size_t i = 0; i < width; i++) to[i] = vector[i];
}

INLINE Floats choose_by(Ints mask, Floats these, Floats those) {
  return (Floats)((mask & (Ints)these) | (~mask & (Ints)those));
}

/* `those` where either is not a number. */
INLINE Floats larger(Floats these, Floats those) { return choose_by(these > those, these, those); }

INLINE Floats smaller(Floats these, Floats those) { return choose_by(these < those, these, those); }

/* The first `width` numbers of a vector, then `fill`. */
INLINE Floats keep(Floats vector, size_t width, float fill) {
  Ints lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return choose_by(lanes < (int32_t)width, vector, broadcast(fill));
}

INLINE Floats8 upper_half(Floats v) {
  return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
}

INLINE Floats8 lower_half(Floats v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* The sums of the four columns of a vector seen as four rows of four. */
INLINE Floats4 sum_of_rows(Floats v) {
  Floats8 half = lower_half(v) + upper_half(v);
  return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
         __builtin_shufflevector(half, half, 4, 5, 6, 7);
}

INLINE float sum(Floats v) {
  Floats4 quarter = sum_of_rows(v);
  return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

/* a0 + a1, a2 + a3, ..., then those of b. */
INLINE Floats add_neighbours(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14,
                                 16, 18, 20, 22, 24, 26, 28, 30) +
         __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15,
                                 17, 19, 21, 23, 25, 27, 29, 31);
}

/* In each row of four: a0 + a2, b0 + b2, a1 + a3, b1 + b3. */
INLINE Floats add_halves(Floats a, Floats b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
         __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}

/* The sums of four vectors: together they take half the shuffles that they would take apart. */
INLINE Floats4 sums(Floats a, Floats b, Floats c, Floats d) {
  Floats ab = add_halves(a, b), cd = add_halves(c, d);
  Floats firsts = __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13,
                                          28, 29);
  Floats seconds = __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14,
                                           15, 30, 31);
  return sum_of_rows(firsts + seconds);
}

/* The largest of sixteen numbers: each step compares with a copy that is turned by half of what is
 * left. */
INLINE float largest(Floats v) {
  v = larger(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15,
                                        0, 1, 2, 3, 4, 5, 6, 7));
  v = larger(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3,
                                        12, 13, 14, 15, 8, 9, 10, 11));
  v = larger(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5,
                                        10, 11, 8, 9, 14, 15, 12, 13));
  return v[0] > v[1] ? v[0] : v[1];
}

/* Whether one of sixteen numbers is `bound` or more. */
INLINE bool any_reaches(Floats v, float bound) {
  Floats reached = choose_by(v >= bound, broadcast(1.0f), broadcast(0.0f));
  int64_t pairs[WIDTH / 2], all = 0;
  memcpy(pairs, &reached, sizeof pairs);
  for (size_t i = 0; i < WIDTH / 2; i++) all |= pairs[i];
  return all != 0;
}

/* Added to a number of at most 2 ** 22, it leaves the nearest integer in the lowest bits, the even
 * one of two: 1.5 * 2 ** 23. */
#define ROUNDING 12582912.0f

/* exp(x) for x <= 0, exactly 1 at 0; 0 below -87 and where x is not a number. The relative error is
 * at most 2e-7 + |x| * 1e-7, and the absolute one 1.3e-7.
 *
 * exp(x) = 2 ** n * 2 ** f with n an integer and |f| <= 1 / 2; 2 ** f is the polynomial through
 * (0, 1) whose largest relative error there is least (1.1e-7). */
INLINE Floats exp_of_negative(Floats x) {
  Ints counts = x > -87.0f;
  Floats exponent = x * 1.44269504f; /* log2(e) */
  Floats shifted = exponent + ROUNDING;
  Floats f = exponent - (shifted - ROUNDING);
  Floats power = f * 1.326472731e-3f + 9.671512991e-3f;
  power = power * f + 5.550733581e-2f;
  power = power * f + 2.402224243e-1f;
  power = power * f + 6.931470037e-1f;
  power = power * f + 1.0f;
  return (Floats)(((Ints)power + ((Ints)shifted << 23)) & counts); /* n goes into the exponent */
}

/* ONNX QuantizeLinear to 8 bits without a sign. */
typedef struct {
  float scale;
  int32_t zero_point;
} Quantizer;

/* Bit for bit what onnxruntime gives: it divides too, and a product with 1 / scale differs. */
INLINE Bytes quantize(Floats x, Quantizer quantizer) {
  Floats lowest = broadcast((float)-quantizer.zero_point);
  Floats highest = broadcast((float)(255 - quantizer.zero_point));
  Floats steps = smaller(larger(x / quantizer.scale, lowest), highest);
  return __builtin_convertvector((Ints)(steps + ROUNDING) + quantizer.zero_point, Bytes);
}

#endif
