#!/usr/bin/env bash
# What the GitHub action does. `action.yml` says what the EAGLEHUB_* variables mean; it runs outside GitHub too.
#
# No input is ever part of a command line that a shell parses: each line of a list is one argument, whatever is in it.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=${RUNNER_TEMP:-$(mktemp -d)}/eaglehub
outputs=${GITHUB_OUTPUT:-/dev/null}
summary=${GITHUB_STEP_SUMMARY:-/dev/null}
# A runner shows nothing of a summary that is larger; a page that does not fit is left out, with a remark.
summary_limit=$((1 << 20))
remark_room=1024

main() {
    local paths=() validate_options=() verify_options=() code=0
    lines paths "${EAGLEHUB_PATHS-.}"
    lines validate_options "${EAGLEHUB_VALIDATE_OPTIONS:-}"
    lines verify_options "${EAGLEHUB_VERIFY_OPTIONS:-}"
    [[ ${#paths[@]} -gt 0 ]] || fail "no path is given"
    if [[ -n ${EAGLEHUB_TARGET:-} ]]; then
        validate_options+=("--target=$EAGLEHUB_TARGET")
        verify_options+=("--target=$EAGLEHUB_TARGET")
    fi
    mkdir -p -- "$work"
    reports=$(mktemp -d "$work/reports.XXXXXX")
    install

    validate || code=$?
    if [[ ${EAGLEHUB_VERIFY:-false} == true && $code == 0 ]]; then
        verify || code=$?
    fi
    tell "$code"
    return "$code"
}

# Put the lines of $2 that are not blank into the array called $1.
lines() {
    local -n array=$1
    local line
    while IFS= read -r line; do
        [[ -z ${line//[[:space:]]/} ]] || array+=("$line")
    done <<<"$2"
}

fail() {
    echo "::error title=eaglehub::$1"
    exit 2
}

# Make `eaglehub` the command to run: the caller's own, or this checkout installed into an environment of its own.
install() {
    eaglehub=${EAGLEHUB_COMMAND:-$work/venv/bin/eaglehub}
    [[ -z ${EAGLEHUB_COMMAND:-} ]] || return 0
    local python=${EAGLEHUB_PYTHON:-python3}
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "eaglehub needs Python 3.11 or newer; set one up in a step before, or name it as python"
    "$python" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$source"
}

# The github format adds to the summary of the job; its lines are all that may speak to the runner.
validate() {
    local code=0
    muted "$eaglehub" validate \
        --output "github=$reports/annotations.txt" \
        --output "sarif=$reports/validate.sarif" \
        --output "junit=$reports/validate.xml" \
        --output "json=$reports/validate.json" \
        "${validate_options[@]}" -- "${paths[@]}" || code=$?
    [[ ! -f $reports/annotations.txt ]] || cat -- "$reports/annotations.txt"
    return "$code"
}

# Every drafter is run, also after one that failed; the gravest code counts.
verify() {
    local path number=0 worst=0 code
    for path in "${paths[@]}"; do
        number=$((number + 1))
        code=0
        muted "$eaglehub" verify --no-write \
            --output "junit=$reports/verify-$number.xml" \
            --output "json=$reports/verify-$number.json" \
            --output "markdown=$reports/verify-$number.md" \
            --output "html=$reports/verify-$number.html" \
            "${verify_options[@]}" -- "$path" || code=$?
        summarise "$reports/verify-$number.md"
        [[ $code -le $worst ]] || worst=$code
    done
    return "$worst"
}

# Run a command whose output the runner must take for text: names in it may look like commands to the runner. One stream, as
# between two nobody promises an order.
muted() {
    local token code=0
    token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "::stop-commands::$token"
    "$@" 2>&1 || code=$?
    echo "::$token::"
    return "$code"
}

# Append a page to the summary of the job.
summarise() {
    [[ -f $1 ]] || return 0
    local room=$((summary_limit - remark_room - $(size "$summary")))
    if [[ $(size "$1") -le $room ]]; then
        cat -- "$1" >>"$summary"
    elif [[ $room -gt 0 ]]; then
        printf '\n%s does not fit into the summary; it is among the reports.\n' "${1##*/}" >>"$summary"
    fi
}

size() {
    if [[ -f $1 ]]; then wc -c <"$1"; else echo 0; fi
}

# Say where the reports are.
tell() {
    {
        echo "exit-code=$1"
        echo "reports=$reports"
        echo "command=$eaglehub"
        [[ ! -f $reports/validate.sarif ]] || echo "sarif=$reports/validate.sarif"
        [[ ! -f $reports/validate.xml ]] || echo "junit=$reports/validate.xml"
        [[ ! -f $reports/validate.json ]] || echo "json=$reports/validate.json"
    } >>"$outputs"
    [[ -f $reports/validate.json ]] ||
        printf '### eaglehub validate\n\nIt could not run and left with exit code %s; the log says why.\n' "$1" >>"$summary"
}

main
