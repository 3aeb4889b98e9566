/*
 * Runs a fuzz target over every file of the directories that are named: its corpus. A corpus
 * without files is a failure. The last line before a crash names the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/fuzz.h"

#define INPUT_MAX ((size_t)1024 * 1024)

/* Returns false if the file can't be read. */
static bool replay(const char *name, uint8_t *buf)
{
    FILE *file = fopen(name, "rb");
    uint8_t *input;
    size_t len;
    bool failed;

    (void)printf("%s\n", name);
    (void)fflush(stdout);
    if (file == NULL)
        return false;
    len = fread(buf, 1, INPUT_MAX, file);
    failed = ferror(file) != 0 || len == INPUT_MAX;
    (void)fclose(file);
    if (failed)
        return false;
    input = fuzz_copy(buf, len);
    (void)LLVMFuzzerTestOneInput(input, len);
    free(input);
    return true;
}

/* Returns the number of files; negative if something could not be read. */
static int replay_all(const char *name, uint8_t *buf)
{
    struct dirent **entries;
    int count = 0, found = scandir(name, &entries, NULL, alphasort);
    char path[1024];

    for (int i = 0; i < found; i++) {
        if (entries[i]->d_name[0] != '.' && count >= 0) {
            (void)snprintf(path, sizeof(path), "%s/%s", name, entries[i]->d_name);
            count = replay(path, buf) ? count + 1 : -1;
        }
        free(entries[i]);
    }
    if (found >= 0)
        free(entries);
    return found < 0 ? -1 : count;
}

int main(int argc, char **argv)
{
    uint8_t *buf = malloc(INPUT_MAX);
    int failed = buf == NULL || argc < 2;

    for (int i = 1; i < argc && !failed; i++) {
        int count = replay_all(argv[i], buf);

        if (count <= 0)
            (void)printf("%s: %s\n", argv[i], count < 0 ? "cannot be read" : "there is no input");
        failed = count <= 0;
    }
    free(buf);
    return failed;
}
