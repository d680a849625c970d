// A stand-in for libcuda.so.1 and libnvidia-ml.so.1 on a machine with two GPUs. CUDA shows the
// process the second first, as CUDA_VISIBLE_DEVICES=1,0 would have it.
#include <cstddef>
#include <cstring>

using std::size_t;

namespace {

constexpr const char* kPlaces[] = {"0000:01:00.0", "0000:41:00.0"};
constexpr unsigned kPercent[] = {10, 75};
constexpr unsigned long long kUsed[] = {1ull << 30, 3ull << 30}, kTotal = 80ull << 30;

const char* failing = "";
int began = 0;

// 4 is NVML_ERROR_NO_PERMISSION; CUDA has no use for what an error is.
int Fails(const char* function) { return std::strcmp(failing, function) == 0 ? 4 : 0; }
int IndexOf(const void* device) { return *static_cast<const int*>(device); }

}  // namespace

extern "C" {

void fake_gpu_fail(const char* function) { failing = function; }
int fake_gpu_began() { return began; }

int cuInit(unsigned) { return Fails("cuInit"); }
int cuDeviceGet(int* device, int number) {
  if (number < 0 || number > 1) return 101;  // CUDA_ERROR_INVALID_DEVICE
  *device = number;
  return 0;
}
int cuDeviceGetName(char* text, int size, int device) {
  std::strncpy(text, device == 0 ? "Fake GPU 0" : "Fake GPU 1", static_cast<size_t>(size));
  return 0;
}
int cuDeviceGetAttribute(int* value, int which, int) {  // 75, 76: compute capability 7.5
  *value = which == 75 ? 7 : 5;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{16} << 30;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::strncpy(text, kPlaces[1 - device], static_cast<size_t>(size));
  return Fails("cuDeviceGetPCIBusId");
}

int nvmlInit_v2() {
  if (Fails("nvmlInit_v2") != 0) return 4;
  ++began;
  return 0;
}
int nvmlShutdown() {
  --began;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* place, void** device) {
  static int indices[] = {0, 1};
  for (int& index : indices) {
    if (std::strcmp(place, kPlaces[index]) == 0) *device = &index;
  }
  return Fails("nvmlDeviceGetHandleByPciBusId_v2");
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  rates[0] = kPercent[IndexOf(device)];
  rates[1] = 99;  // of the memory's time
  return Fails("nvmlDeviceGetUtilizationRates");
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[0] = kTotal;
  memory[1] = kTotal - kUsed[IndexOf(device)];
  memory[2] = kUsed[IndexOf(device)];
  return Fails("nvmlDeviceGetMemoryInfo");
}
}
