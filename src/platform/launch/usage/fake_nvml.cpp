// A stand-in for libnvidia-ml.so.1, driven by the text of the file that TUTTI_FAKE_NVML names: a
// line for each device, "NAME=VALUE …" with
//   uuid         in full
//   busy         percent; of these values what is left out is "not supported"
//   used, total  MiB, both
//   watts, celsius
//   denied=1     this process may not use it
//   lost=1       it does not answer
//   mig=1        an instance, which counts among no GPUs
// The file is read with each call, so that it may change. Without a file there is no driver.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3,
              kNoPermission = 4, kNotFound = 6, kDriverNotLoaded = 9, kGpuIsLost = 15;

using Device = std::map<std::string, std::string>;

int begun = 0;

std::vector<Device> Devices() {
  std::vector<Device> devices;
  const char* const path = std::getenv("TUTTI_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string line; std::getline(file, line);) {
    Device& device = devices.emplace_back();
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos) device[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return devices;
}

bool Has(const Device& device, const char* name) { return device.count(name) > 0; }

// A handle is the device's line, from 1 on.
void* HandleOf(size_t line) { return reinterpret_cast<void*>(line + 1); }

// Gives a device its value of that name, times `factor`.
template <typename Number>
int Value(void* handle, const char* name, double factor, Number* value) {
  const std::vector<Device> devices = Devices();
  const size_t line = reinterpret_cast<size_t>(handle) - 1;
  if (begun == 0) return kUninitialized;
  if (line >= devices.size()) return kInvalidArgument;
  if (!Has(devices[line], name)) return kNotSupported;
  *value = static_cast<Number>(std::atof(devices[line].at(name).c_str()) * factor);
  return kSuccess;
}

}  // namespace

extern "C" {

// How many have begun and not ended.
int fake_nvml_begun() { return begun; }

int nvmlInit_v2() {
  if (std::getenv("TUTTI_FAKE_NVML") == nullptr) return kDriverNotLoaded;
  ++begun;
  return kSuccess;
}

int nvmlShutdown() {
  --begun;
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 0;
  for (const Device& device : Devices()) *count += Has(device, "mig") ? 0 : 1;
  return begun > 0 ? kSuccess : kUninitialized;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  const std::vector<Device> devices = Devices();
  for (size_t line = 0; line < devices.size(); ++line) {
    if (Has(devices[line], "mig") || index-- > 0) continue;
    if (Has(devices[line], "denied")) return kNoPermission;
    if (Has(devices[line], "lost")) return kGpuIsLost;
    *handle = HandleOf(line);
    return kSuccess;
  }
  return kInvalidArgument;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  const std::vector<Device> devices = Devices();
  for (size_t line = 0; line < devices.size(); ++line) {
    if (!Has(devices[line], "uuid") || devices[line].at("uuid") != uuid) continue;
    *handle = HandleOf(line);
    return kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  const std::vector<Device> devices = Devices();
  const size_t line = reinterpret_cast<size_t>(handle) - 1;
  if (line >= devices.size() || !Has(devices[line], "uuid")) return kNotSupported;
  std::snprintf(text, size, "%s", devices[line].at("uuid").c_str());
  return kSuccess;
}

int nvmlDeviceGetUtilizationRates(void* handle, unsigned* rates) {
  rates[1] = 99;  // of the memory's time
  return Value(handle, "busy", 1, &rates[0]);
}

int nvmlDeviceGetMemoryInfo(void* handle, unsigned long long* memory) {
  constexpr double kMiB = 1 << 20;
  const int used = Value(handle, "used", kMiB, &memory[2]);
  const int total = Value(handle, "total", kMiB, &memory[0]);
  if (used != kSuccess || total != kSuccess) return used != kSuccess ? used : total;
  memory[1] = memory[0] - memory[2];
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  return Value(handle, "watts", 1000, milliwatts);
}

#ifndef FAKE_NVML_WITHOUT_TEMPERATURE
int nvmlDeviceGetTemperature(void* handle, unsigned sensor, unsigned* celsius) {
  return sensor == 0 ? Value(handle, "celsius", 1, celsius) : kInvalidArgument;
}
#endif
}
