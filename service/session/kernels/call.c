#include "call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define MESSAGE_SIZE 320

static bool succeeded(Call *call, OrtStatus *status) {
  call->status = status;
  return status == NULL;
}

void fail(Call *call, const char *format, ...) {
  if (call->status != NULL) return;
  char message[MESSAGE_SIZE];
  int used = snprintf(message, sizeof message, "%s: ", call->operator_name);
  va_list values;
  va_start(values, format);
  vsnprintf(message + used, sizeof message - (size_t)used, format, values);
  va_end(values);
  call->status = call->api->CreateStatus(ORT_INVALID_ARGUMENT, message);
}

static void read_shape(Call *call, const OrtValue *value, Tensor *tensor) {
  const OrtApi *api = call->api;
  OrtTensorTypeAndShapeInfo *info = NULL;
  if (!succeeded(call, api->GetTensorTypeAndShape(value, &info))) return;
  if (succeeded(call, api->GetDimensionsCount(info, &tensor->rank))) {
    if (tensor->rank > MAX_RANK)
      fail(call, "an input has %zu dimensions, the limit is %d", tensor->rank, MAX_RANK);
    else
      succeeded(call, api->GetDimensions(info, tensor->shape, tensor->rank));
  }
  api->ReleaseTensorTypeAndShapeInfo(info);
}

static Tensor read_tensor(Call *call, const OrtValue *value) {
  Tensor tensor = {0};
  /* The C interface has no other way to the data of an input. */
  if (succeeded(call, call->api->GetTensorMutableData((OrtValue *)value, &tensor.data)))
    read_shape(call, value, &tensor);
  return tensor;
}

Tensor read_constant(Call *call, const OrtKernelInfo *info, size_t index) {
  int is_constant = 0;
  const OrtValue *value = NULL;
  if (call->status != NULL ||
      !succeeded(call, call->api->KernelInfoGetConstantInput_tensor(info, index, &is_constant,
                                                                    &value)) ||
      !is_constant)
    return (Tensor){0};
  return read_tensor(call, value);
}

Tensor read_input(Call *call, size_t index) {
  const OrtValue *value = NULL;
  if (call->constants[index].data != NULL) return call->constants[index];
  if (call->status != NULL ||
      !succeeded(call, call->api->KernelContext_GetInput(call->context, index, &value)) ||
      value == NULL)
    return (Tensor){0};
  return read_tensor(call, value);
}

/* (2, any, 64) */
static void print_shape(char *text, size_t size, size_t rank, const int64_t *shape) {
  size_t used = (size_t)snprintf(text, size, "(");
  for (size_t i = 0; i < rank && used < size; i++) {
    const char *separator = i == 0 ? "" : ", ";
    if (shape[i] == ANY)
      used += (size_t)snprintf(text + used, size - used, "%sany", separator);
    else
      used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, separator, shape[i]);
  }
  if (used < size) snprintf(text + used, size - used, ")");
}

static bool matches(const Tensor *tensor, const Expected *expected) {
  if (tensor->rank != expected->rank) return false;
  for (size_t i = 0; i < tensor->rank; i++)
    if (expected->shape[i] != ANY && tensor->shape[i] != expected->shape[i]) return false;
  return true;
}

static void fail_of_shape(Call *call, const Tensor *tensor, const Expected *expected) {
  char found[MESSAGE_SIZE / 4], wanted[MESSAGE_SIZE / 4];
  print_shape(found, sizeof found, tensor->rank, tensor->shape);
  print_shape(wanted, sizeof wanted, expected->rank, expected->shape);
  fail(call, "%s has shape %s where %s is expected", expected->name, found, wanted);
}

Tensor read_expected(Call *call, size_t index, Expected expected) {
  Tensor tensor = read_input(call, index);
  if (call->status == NULL && !matches(&tensor, &expected))
    fail_of_shape(call, &tensor, &expected);
  return tensor;
}

Tensor read_optional(Call *call, size_t index, Expected expected) {
  Tensor tensor = read_input(call, index);
  if (call->status == NULL && tensor.data != NULL && !matches(&tensor, &expected))
    fail_of_shape(call, &tensor, &expected);
  return tensor;
}

/* Of one element, whatever its rank. */
static const void *read_scalar(Call *call, size_t index, const char *name) {
  Tensor tensor = read_input(call, index);
  for (size_t i = 0; i < tensor.rank; i++)
    if (tensor.shape[i] != 1) fail_of_shape(call, &tensor, &(Expected){.name = name});
  return tensor.data;
}

Quantizer read_quantizer(Call *call, size_t index) {
  const float *scale = read_scalar(call, index, "scale");
  const uint8_t *zero_point = read_scalar(call, index + 1, "zero_point");
  if (call->status != NULL) return (Quantizer){0};
  return (Quantizer){*scale, *zero_point};
}

void expect_number(Call *call, const char *name, int64_t value, int64_t lowest, int64_t highest) {
  if (value < lowest || value > highest)
    fail(call, "%s is %" PRId64 ", outside %" PRId64 " to %" PRId64, name, value, lowest, highest);
}

void expect_numbers(Call *call, const char *name, const Tensor *values, int64_t lowest,
                    int64_t highest) {
  if (call->status != NULL) return;
  const int32_t *numbers = values->data;
  for (int64_t i = 0; i < values->shape[0]; i++) {
    if (numbers[i] >= lowest && numbers[i] <= highest) continue;
    fail(call, "%s[%" PRId64 "] is %" PRId32 ", outside %" PRId64 " to %" PRId64, name, i,
         numbers[i], lowest, highest);
    return;
  }
}

void expect_indices(Call *call, const char *name, const Tensor *values, int64_t count) {
  if (call->status != NULL) return;
  const int64_t *indices = values->data, columns = values->shape[1];
  for (int64_t i = 0; i < values->shape[0] * columns; i++) {
    if (indices[i] >= 0 && indices[i] < count) continue;
    fail(call, "%s[%" PRId64 ", %" PRId64 "] is %" PRId64 ", outside 0 to %" PRId64, name,
         i / columns, i % columns, indices[i], count - 1);
    return;
  }
}

void *write_output(Call *call, size_t index, size_t rank, const int64_t *shape) {
  OrtValue *value = NULL;
  void *data = NULL;
  if (call->status == NULL &&
      succeeded(call, call->api->KernelContext_GetOutput(call->context, index, shape, rank,
                                                         &value)) &&
      value != NULL)
    succeeded(call, call->api->GetTensorMutableData(value, &data));
  return data;
}
