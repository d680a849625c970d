// Durability says what a write to the store must survive (store.h).
#pragma once

namespace tutti::store {

// What a write that has returned OK survives. kCrash: kill -9 of this process, but not the loss of
// power, unless a write of kPowerLoss came after it: what a power loss takes is always the last.
// kDeferred: the same until Store::AwaitDurable has returned OK for it, which its caller calls
// before anything follows from the write or anybody is told of it.
enum class Durability { kCrash, kDeferred, kPowerLoss };

}  // namespace tutti::store
