/* Two passes over a row, whose logits stay in the nearest cache:
 *
 *   maxima     of each of TILE columns of the row; each is a logit, so that the k-th best of them
 *              is a lower bound of the k-th best logit, and few others reach it
 *   selection  of the logits that do, into a sorted list; and the sum of all exponentials
 */
#include "candidates.h"

#define TILE_VECTORS 4
#define TILE (TILE_VECTORS * WIDTH)

/* The logits of one row. */
typedef struct {
  const float *common;
  const int32_t *products;
  const float *scales, *biases;
  size_t num_common, num_listed;
} Row;

/* Consecutive logits of a row; those behind the first `count` are minus infinity. */
typedef struct {
  Floats logits[TILE_VECTORS];
  size_t first_place, count;
} Tile;

/* The best logits so far, descending, and where they are. */
typedef struct {
  float *logits;
  int64_t *places;
  size_t count, capacity;
  float bound; /* what a logit has to reach */
} Best;

INLINE size_t num_tiles(size_t count) { return (count + TILE - 1) / TILE; }

INLINE Floats common_logits(const Row *row, size_t start) {
  if (start >= row->num_common) return broadcast(-INFINITY);
  return load_or(row->common + start, width_at(start, row->num_common), -INFINITY);
}

INLINE Floats listed_logits(const Row *row, size_t start) {
  if (start >= row->num_listed) return broadcast(-INFINITY);
  size_t width = width_at(start, row->num_listed);
  return load_integers(row->products + start, width) * load(row->scales + start, width) +
         load_or(row->biases + start, width, -INFINITY);
}

INLINE Tile common_tile(const Row *row, size_t start) {
  Tile tile = {.first_place = start, .count = row->num_common - start};
  for (size_t i = 0; i < TILE_VECTORS; i++) {
    size_t at = start + i * WIDTH;
    tile.logits[i] =
        tile.count >= TILE ? load(row->common + at, WIDTH) : common_logits(row, at);
  }
  return tile;
}

INLINE Tile listed_tile(const Row *row, size_t start) {
  Tile tile = {.first_place = row->num_common + start, .count = row->num_listed - start};
  for (size_t i = 0; i < TILE_VECTORS; i++)
    tile.logits[i] = listed_logits(row, start + i * WIDTH);
  return tile;
}

/* No tile has words of both parts: those of the common ones come first. */
INLINE Tile tile_of(const Row *row, size_t index) {
  size_t num_common = num_tiles(row->num_common);
  return index < num_common ? common_tile(row, index * TILE)
                            : listed_tile(row, (index - num_common) * TILE);
}

/* Behind its equals, which came earlier in the row. */
static void insert(Best *best, float logit, size_t place) {
  if (best->count < best->capacity)
    best->count++;
  else if (!(logit > best->logits[best->count - 1]))
    return;
  size_t i = best->count - 1;
  for (; i > 0 && best->logits[i - 1] < logit; i--) {
    best->logits[i] = best->logits[i - 1];
    best->places[i] = best->places[i - 1];
  }
  best->logits[i] = logit;
  best->places[i] = (int64_t)place;
  if (best->count == best->capacity) best->bound = best->logits[best->count - 1];
}

static __attribute__((noinline)) void insert_all(Best *best, const float *logits, size_t count,
                                                 size_t first_place) {
  for (size_t i = 0; i < count; i++)
    if (logits[i] >= best->bound) insert(best, logits[i], first_place + i);
}

INLINE Floats largest_of(const Tile *tile) {
  return larger(larger(tile->logits[0], tile->logits[1]), larger(tile->logits[2], tile->logits[3]));
}

/* Nearly always there is nothing to insert, which one test tells for the whole tile. */
INLINE void insert_tile(Best *best, const Tile *tile) {
  if (!any_reaches(largest_of(tile), best->bound)) return;
  for (size_t start = 0; start < TILE && start < tile->count; start += WIDTH) {
    Floats vector = tile->logits[start / WIDTH];
    float logits[WIDTH];
    if (!any_reaches(vector, best->bound)) continue;
    store(logits, vector, WIDTH);
    insert_all(best, logits, width_at(start, tile->count), tile->first_place + start);
  }
}

INLINE Tile maxima_of(const Row *row, size_t num) {
  Tile maxima = {.first_place = 0, .count = TILE};
  for (size_t i = 0; i < TILE_VECTORS; i++) maxima.logits[i] = broadcast(-INFINITY);
  for (size_t index = 0; index < num; index++) {
    Tile tile = tile_of(row, index);
    for (size_t i = 0; i < TILE_VECTORS; i++)
      maxima.logits[i] = larger(tile.logits[i], maxima.logits[i]);
  }
  return maxima;
}

/* Raises the bound of an empty list. The maxima of fewer columns are enough for a short one. */
INLINE void find_bound(Best *best, const Tile *maxima) {
  float logits[TILE];
  size_t count = best->capacity <= WIDTH ? WIDTH : TILE;
  store(logits, largest_of(maxima), WIDTH);
  if (count == TILE) memcpy(logits, maxima->logits, sizeof logits);
  insert_all(best, logits, count, 0);
  best->count = 0;
}

/* Logits become log-probabilities; a row with NaNs may lack some. */
static void finish(Best *best, float highest, float log_total) {
  for (size_t i = 0; i < best->count; i++)
    best->logits[i] = best->logits[i] - highest - log_total;
  for (size_t i = best->count; i < best->capacity; i++) {
    best->logits[i] = NAN;
    best->places[i] = 0;
  }
}

static AVX512 void choose(const Row *row, Best *best) {
  size_t num = num_tiles(row->num_common) + num_tiles(row->num_listed);
  Tile maxima = maxima_of(row, num);
  float highest = largest(largest_of(&maxima));
  find_bound(best, &maxima);
  Floats totals[TILE_VECTORS] = {0};
  for (size_t index = 0; index < num; index++) {
    Tile tile = tile_of(row, index);
    for (size_t i = 0; i < TILE_VECTORS; i++)
      totals[i] += exp_of_negative(tile.logits[i] - highest);
    insert_tile(best, &tile);
  }
  finish(best, highest, logf(sum((totals[0] + totals[1]) + (totals[2] + totals[3]))));
}

void list_candidates(const ListCandidates *c) {
  for (size_t index = 0; index < c->num_sentences * c->num_queries; index++) {
    size_t sentence = index / c->num_queries;
    Row row = {
        .common = c->common + index * c->num_common,
        .products = c->products + index * c->num_listed,
        .scales = c->scales + sentence * c->num_listed,
        .biases = c->biases + sentence * c->num_listed,
        .num_common = c->num_common,
        .num_listed = c->num_listed,
    };
    Best best = {
        .logits = c->log_probs + index * c->num_candidates,
        .places = c->places + index * c->num_candidates,
        .capacity = c->num_candidates,
        .bound = -INFINITY,
    };
    choose(&row, &best);
  }
}
