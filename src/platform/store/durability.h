// What a write to the store survives, as its caller asks for it (store.h).
#pragma once

namespace tutti::store {

// What a write that has returned OK survives. kCrash: kill -9 of this process, but not the loss of
// power, unless a write of kPowerLoss came after it: what a power loss takes is always the last.
enum class Durability { kCrash, kPowerLoss };

}  // namespace tutti::store
