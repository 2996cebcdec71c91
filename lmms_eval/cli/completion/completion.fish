# Completion of lmms-eval for fish: lmms-eval completion fish | source
# or kept as ~/.config/fish/completions/lmms-eval.fish
function __lmms_eval_complete
    set -l words (commandline -opc)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    type -q -- $program; or set program lmms-eval
    set -e words[1]
    set -l current (commandline -ct)
    set -l answer ($program completion answer fish $words "$current" 2>/dev/null)
    set -l head (string split \t -- $answer[1])
    set -e answer[1]
    if test "$head[1]" = files
        set -l start (math (string length -- "$head[2]") + 1)
        for path in (__fish_complete_path (string sub -s $start -- "$current"))
            printf '%s%s\n' "$head[2]" $path
        end
    else
        for line in $answer
            string split -f 1 \t -- $line
        end
    end
end
complete -c lmms-eval -f -a '(__lmms_eval_complete)'
