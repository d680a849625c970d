// Mixes images by mixup (Zhang et al. 2018, "mixup: Beyond Empirical Risk Minimization") and CutMix
// (Yun et al. 2019). Images are mixed in pairs, the first of a mini-batch with the second, the
// third with the fourth: the order is random anyway, each image is decoded once, and a rank whose
// part begins at an even position (sampling/sampler.h) needs no other's. How a step mixes is drawn
// for all of its pairs: a pure function of (seed, epoch, step), the same on every rank.
#pragma once

#include "runtime/data/augment/normalize.h"
#include "runtime/data/image.h"
#include "runtime/data/loader.h"
#include "runtime/data/sampling/random_stream.h"

namespace tutti::data {

// Checks the fields; InvalidArgument names the field.
absl::Status Validate(const Mixing& mixing);

struct Mix {
  float own = 1;  // of an image's label, its own share; the rest is its partner's
  // CutMix: where the two change places, 1 - own of the area. Empty: mixup, in which an image's
  // values are own * its own + (1 - own) * its partner's.
  Region cut;
};

// Draws how images of `size` pixels are mixed. A share is drawn from Beta(alpha, alpha).
Mix DrawMix(const Mixing& mixing, ImageSize size, RandomStream random);

// Mixes two normalised images in place, in the normalizer's type and layout.
void MixPair(const Mix& mix, const Normalizer& normalizer, ImageSize size, void* first,
             void* second);

}  // namespace tutti::data
