# Completion of leatctl for bash. SPDX-License-Identifier: Apache-2.0
#
# Verbs, options and words are known here; sessions' numbers, vhosts, users and backends are asked
# of the leat that the command line names. If it can't be asked nothing is offered.

# Offers those of the lines of standard input that begin as the word at hand does, quoted.
_leatctl_offer() {
    local line word
    # What was typed may be quoted already, with or without the quote's end.
    word=${cur//\\/}
    word=${word#[\"\']}
    while IFS= read -r line; do
        if [[ $line == "$word"* ]]; then
            COMPREPLY+=("$(printf '%q' "$line")")
        fi
    done
}

# Prints the values of the member $1 in what leat answers to the rest, one a line. Texts with a
# quote or a backslash in them are left out.
_leatctl_ask() {
    local member=$1
    shift
    timeout 2 "$program" "${socket[@]}" --json "$@" 2>/dev/null </dev/null |
        grep -oE "\"$member\": ?(\"[^\"\\\\]*\"|[0-9]+)" |
        sed -E 's/^"[^"]*": ?//; s/^"(.*)"$/\1/' | sort -u
}

# After "session ID" and the like: what may stand in place $place of the words, from 0.
_leatctl_words() {
    case $place:${words[0]} in
    0:*) compgen -W "status sessions session backends tls reload drain log config help" ;;
    1:session) _leatctl_ask id sessions ;;
    2:session) compgen -W "show close kill trace" ;;
    1:log) compgen -W "error warn info debug trace" ;;
    1:config) compgen -W "show" ;;
    1:help) compgen -W "status sessions session backends tls reload drain log config" ;;
    esac
}

_leatctl_options() {
    compgen -W "--json --socket --help --version"
    if [[ ${words[0]} == sessions ]]; then
        compgen -W "--vhost --user --backend --client --listener --state --follow"
    fi
}

# Prints what the value of the option $1 may be.
_leatctl_value() {
    case $1 in
    --vhost | --user | --listener) _leatctl_ask "${1#--}" sessions ;;
    --backend) _leatctl_ask name backends ;;
    --state) compgen -W "proxy tls handshake search open closing ending" ;;
    esac
}

_leatctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} program=$1 place=0 option='' i word
    local -a socket=() words=('')
    COMPREPLY=()
    # Bash makes words of their own of the '=' in --vhost=x; so that may stand between.
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == = && -n $option ]]; then
            continue
        elif [[ -n $option ]]; then
            case $option in -s | --socket) socket=(-s "${word/#\~\//$HOME/}") ;; esac
            option=''
            continue
        fi
        case $word in
        -s | --socket | --vhost | --user | --backend | --client | --listener | --state)
            option=$word ;;
        -*) ;;
        *) words[place++]=$word ;;
        esac
    done
    [[ $cur == = && -n $option ]] && cur=''
    case $option in
    -s | --socket)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    ?*) _leatctl_offer < <(_leatctl_value "$option") ;;
    *)
        if [[ $cur == -* ]]; then
            _leatctl_offer < <(_leatctl_options)
        else
            _leatctl_offer < <(_leatctl_words)
        fi ;;
    esac
}

complete -F _leatctl leatctl
