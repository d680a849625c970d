// Names this machine's processor, for errors that say what it lacks.
#pragma once

#include <string>

namespace tutti::base {

// Returns "Intel Celeron_4x0 (Conroe/Merom Class Core 2)"; "" if it does not say, as on other
// processors than x86-64. Thread-safe; also before the process's own initialisers have run.
std::string ProcessorName();

}  // namespace tutti::base
