/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

const char *leat_status_name(enum leat_status status)
{
    switch (status) {
    case LEAT_OK:
        return "LEAT_OK";
    case LEAT_ENOMEM:
        return "LEAT_ENOMEM";
    case LEAT_EUSAGE:
        return "LEAT_EUSAGE";
    case LEAT_EAGAIN:
        return "LEAT_EAGAIN";
    case LEAT_ETLS:
        return "LEAT_ETLS";
    case LEAT_EVERIFY:
        return "LEAT_EVERIFY";
    case LEAT_EIO:
        return "LEAT_EIO";
    case LEAT_ECLOSED:
        return "LEAT_ECLOSED";
    case LEAT_ETRUNCATED:
        return "LEAT_ETRUNCATED";
    case LEAT_ERESET:
        return "LEAT_ERESET";
    case LEAT_ETIMEOUT:
        return "LEAT_ETIMEOUT";
    case LEAT_EPROTOCOL:
        return "LEAT_EPROTOCOL";
    case LEAT_ELIMIT:
        return "LEAT_ELIMIT";
    case LEAT_ENOTFOUND:
        return "LEAT_ENOTFOUND";
    case LEAT_ECANCELLED:
        return "LEAT_ECANCELLED";
    }
    return "LEAT_UNKNOWN";
}

enum leat_status leat_error_set(struct leat_error *err, enum leat_status status, int sys,
                                const char *format, ...)
{
    int saved_errno = errno;
    /* Built aside, since what is formatted may be the text that ERR has now. */
    struct leat_error built = {.status = status, .sys = sys};
    struct leat_text text;
    va_list args;

    if (err == NULL)
        return status;
    leat_text_init(&text, built.text, sizeof(built.text));
    va_start(args, format);
    leat_text_vadd(&text, format, args);
    va_end(args);
    if (sys != 0) {
        char reason[128];

        leat_text_add(&text, ": %s", strerror_r(sys, reason, sizeof(reason)));
    }
    *err = built;
    errno = saved_errno;
    return status;
}

enum leat_status leat_error_set_expected(struct leat_error *err, const char *expected,
                                         struct leat_str got)
{
    char buf[160];
    struct leat_text quoted;

    leat_text_init(&quoted, buf, sizeof(buf));
    leat_text_add_quoted(&quoted, got);
    return leat_error_set(err, LEAT_EUSAGE, 0, "expected %s, got %s", expected, buf);
}
