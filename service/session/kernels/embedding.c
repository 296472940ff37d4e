#include "embedding.h"

static AVX512 void embed_token(const Embedding *e, size_t index, size_t place) {
  size_t token = e->tokens[index];
  const uint8_t *word = e->table + token * e->size;
  const float *position = e->positions + place * e->size;
  for (size_t start = 0; start < e->size; start += WIDTH) {
    size_t width = width_at(start, e->size);
    Floats steps = load_bytes(word + start, width) - TABLE_ZERO_POINT;
    Floats hidden = steps * e->scales[token] + load(position + start, width);
    store(e->hidden + index * e->size + start, hidden, width);
    store_bytes(e->quantized + index * e->size + start, quantize(hidden, e->quantizer), width);
  }
}

void embed(const Embedding *e) {
  for (size_t index = 0; index < e->num_sentences * e->num_tokens; index++)
    embed_token(e, index, e->places == NULL ? index % e->num_tokens : (size_t)e->places[index]);
}
