# Completion of lmms-eval for bash: source <(lmms-eval completion bash)
_lmms_eval_complete() {
    local program="${1/#\~\//$HOME/}" kind="" rest="" value
    COMPREPLY=()
    type -t -- "$program" >/dev/null || program=lmms-eval
    {
        IFS=$'\t' read -r kind rest
        while IFS= read -r value; do
            COMPREPLY+=("$value")
        done
    } < <("$program" completion answer bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    [ "$kind" = files ] || compopt +o default 2>/dev/null
    [ "$kind" != keys ] || compopt -o nospace 2>/dev/null
}
complete -o default -F _lmms_eval_complete lmms-eval
