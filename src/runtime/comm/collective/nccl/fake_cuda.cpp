// A library with what is used of CUDA's driver interface over plain memory, for tests without a
// GPU: work is done when it is put on a stream. fake_cuda_hold keeps a device's events from coming
// true. (Its name keeps it out of the room's library: CMakeLists.txt builds it as a library of its
// own.)
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalidContext = 201, kNotReady = 600;

std::atomic<int> held = -1, waits = 0, events = 0;
int primary[2];  // the contexts of two devices
thread_local std::vector<void*> current;

int Current() { return current.empty() ? kInvalidContext : kSuccess; }
bool IsHeld() { return held >= 0 && current.back() == &primary[held]; }

}  // namespace

extern "C" {

void fake_cuda_hold(int device) { held = device; }  // -1: none
int fake_cuda_waits() { return waits; }             // of streams for events
int fake_cuda_events() { return events; }           // that were made and not destroyed

int cuInit(unsigned) { return kSuccess; }
int cuGetErrorString(int, const char** text) {
  *text = "an error";
  return kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < 2 ? kSuccess : 101;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &primary[device];
  return kSuccess;
}
int cuCtxPushCurrent_v2(void* context) {
  current.push_back(context);
  return kSuccess;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = current.back();
  current.pop_back();
  return kSuccess;
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return Current();
}
int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  *stream = std::malloc(1);
  return flags == 1 && priority == -5 ? Current() : 1;
}
int cuStreamDestroy_v2(void* stream) {
  std::free(stream);
  return Current();
}
int cuStreamWaitEvent(void*, void*, unsigned) {
  ++waits;
  return Current();
}
int cuEventCreate(void** event, unsigned) {
  ++events;
  *event = std::malloc(1);
  return Current();
}
int cuEventRecord(void*, void*) { return Current(); }
int cuEventQuery(void*) { return Current() == kSuccess && IsHeld() ? kNotReady : Current(); }
int cuEventDestroy_v2(void* event) {
  --events;
  std::free(event);
  return Current();
}
int cuMemAlloc_v2(uintptr_t* address, size_t bytes) {
  *address = reinterpret_cast<uintptr_t>(std::malloc(bytes));
  return Current();
}
int cuMemFree_v2(uintptr_t address) {
  std::free(reinterpret_cast<void*>(address));
  return Current();
}
int cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return Current();
}

}  // extern "C"
