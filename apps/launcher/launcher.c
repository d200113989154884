/* SPDX-License-Identifier: Apache-2.0
 *
 * The command `reef` of packages: finds libreef, which holds the whole program there, and calls it. So packages have
 * the compiler and the virtual device once, not once in the library and once in the command. Builds for developers link
 * the program as a whole instead.
 *
 * The library lies near the command: in lib, lib64 or Debian's folder of an architecture (tarball, .deb), in the
 * package of a Python environment (wheel), or beside it (build folder). It has to be of the same version: the entry is
 * private.
 */
#include <dlfcn.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char* const kPlaces[] = {"../lib/" REEF_LIBRARY_ARCHITECTURE,     "../lib",       "../lib64",
                                      "../lib*/python3*/*-packages/reef/_lib", "../reef/_lib", "."};

static void* open_library(const char* folder) {
  glob_t found;
  void* library = NULL;
  for (size_t i = 0; library == NULL && i < sizeof kPlaces / sizeof *kPlaces; ++i) {
    char pattern[PATH_MAX + 64];
    snprintf(pattern, sizeof pattern, "%s/%s/%s", folder, kPlaces[i], REEF_LIBRARY_NAME);
    if (glob(pattern, 0, NULL, &found) == 0) library = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
  }
  return library;
}

int main(int argc, char** argv) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  char* const here = dirname(path);
  void* const library = open_library(here);
  if (library == NULL) {
    const char* const reason = dlerror();
    fprintf(stderr, "reef: cannot start: %s was not found from %s%s%s. Install the package again, with all its files\n",
            REEF_LIBRARY_NAME, here, reason ? ", or could not be loaded: " : "", reason ? reason : "");
    return 1;
  }
  const char* (*version)(void) = NULL;
  *(void**)&version = dlsym(library, "reef_version");
  int (*program)(int, char**) = NULL;
  *(void**)&program = dlsym(library, "reef_program");
  if (version == NULL || program == NULL || strcmp(version(), REEF_VERSION) != 0) {
    fprintf(stderr, "reef: cannot start: this command has version %s, %s another. Install both from one release\n",
            REEF_VERSION, REEF_LIBRARY_NAME);
    return 1;
  }
  return program(argc, argv);
}
