#compdef lmms-eval
# Completion of lmms-eval for zsh, after compinit: source <(lmms-eval completion zsh)
# or kept as a file _lmms-eval in a folder of fpath.
_lmms_eval_complete() {
    local program=${(Q)words[1]} line kind prefix
    local -a answer values displays
    [[ $program == \~/* ]] && program=$HOME/${program#\~/}
    whence -- "$program" >/dev/null || program=lmms-eval
    answer=("${(@f)$("$program" completion answer zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    kind=${answer[1]%%$'\t'*}
    prefix=${answer[1]#*$'\t'}
    for line in "${(@)answer[2,-1]}"; do
        values+=("${line%%$'\t'*}")
        displays+=("${line#*$'\t'}")
    done
    case $kind in
        files) compset -p ${#prefix} && _files ;;
        keys) compadd -S '' -d displays -a values ;;
        words) compadd -d displays -a values ;;
    esac
}
if [[ $funcstack[1] == _lmms-eval ]]; then
    _lmms_eval_complete "$@"
else
    compdef _lmms_eval_complete lmms-eval
fi
