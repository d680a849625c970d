// Nvml asks NVIDIA's management library, which comes with the driver and is loaded at run time,
// what a GPU does. It is written from the documented ABI, whose functions here have not changed
// since CUDA 5.5. A call may hang where the driver does. Thread-compatible.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tutti::base {

class Nvml {
 public:
  using Device = void*;  // a whole GPU or a MIG instance
  struct Memory {
    double used = 0, total = 0;  // bytes; used: by all processes and the driver
  };

  // Loads the library of that name, or path, and begins with it. Null where there is none, or where
  // it finds no driver.
  static std::unique_ptr<Nvml> Open(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Returns how many GPUs there are, in the order of the bus, those too that this process may not
  // use; 0 if it is not told.
  int Count() const;
  // Return a device, or null: there is none, or it does not answer. `denied`: it is there, and this
  // process may not use it.
  Device ByIndex(int index, bool* denied = nullptr) const;
  Device ByUuid(const std::string& uuid) const;          // "GPU-…" or "MIG-…", in full
  Device ByPlace(const std::string& pci_address) const;  // "0000:17:00.0"
  std::string UuidOf(Device device) const;               // "": it is not told

  // Return what the library tells of a device; nothing where it does not know it, as of some cards
  // and of MIG instances.
  // The part of its last sample period, a sixth of a second to one by the kind of GPU, in which a
  // kernel ran: of one process or another, on one multiprocessor or all.
  std::optional<double> BusyPart(Device device) const;
  std::optional<Memory> MemoryOf(Device device) const;
  std::optional<double> Watts(Device device) const;
  std::optional<double> Celsius(Device device) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<const Functions> functions);

  const std::unique_ptr<const Functions> functions_;
};

}  // namespace tutti::base
