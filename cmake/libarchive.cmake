# tutti_libarchive: libarchive for tar and zstd. The shared library brings libxml2 and with it ICU's 31 MB along, also to
# nodes that share nothing and get the program with all its libraries; so the static one is taken where the linker can leave
# out of it what other formats need.
include(CheckCXXSourceCompiles)
find_package(LibArchive REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
find_library(TUTTI_STATIC_LIBARCHIVE libarchive.a)
mark_as_advanced(TUTTI_STATIC_LIBARCHIVE)
if(TUTTI_STATIC_LIBARCHIVE)
  set(CMAKE_REQUIRED_LIBRARIES ${TUTTI_STATIC_LIBARCHIVE} PkgConfig::ZSTD)
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,--gc-sections)
  check_cxx_source_compiles("
    #include <archive.h>
    int main() {
      archive_read_support_format_tar(archive_read_new());
      return archive_write_set_format_pax_restricted(archive_write_new());
    }" TUTTI_LIBARCHIVE_IN_PARTS)
  unset(CMAKE_REQUIRED_LIBRARIES)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()
add_library(tutti_libarchive INTERFACE)
if(TUTTI_LIBARCHIVE_IN_PARTS)
  target_include_directories(tutti_libarchive SYSTEM INTERFACE ${LibArchive_INCLUDE_DIRS})
  target_link_libraries(tutti_libarchive INTERFACE ${TUTTI_STATIC_LIBARCHIVE} PkgConfig::ZSTD)
  target_link_options(tutti_libarchive INTERFACE -Wl,--gc-sections)
else()
  target_link_libraries(tutti_libarchive INTERFACE LibArchive::LibArchive)
endif()
