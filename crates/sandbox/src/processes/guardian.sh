# Ends what a program has started, once the program is gone. Reads from the program, line by line:
#   +GROUP  a process group has been started     -GROUP  it has ended     quit  nothing is left to be ended
# Arguments: the lowest and the highest limit on file locks, and the variable, that mark its processes.
trap '' HUP INT QUIT TERM PIPE
low=$1 high=$2 variable=$3 groups=' '
while read -r line; do
    case $line in
    quit) exit 0 ;;
    +*) groups="$groups${line#+} " ;;
    -*) case $groups in *" ${line#-} "*) groups="${groups%% "${line#-}" *} ${groups#* "${line#-}" }" ;; esac ;;
    esac
done

# The program is gone: its groups first, then whoever left them.
for group in $groups; do kill -9 -- "-$group"; done
[ -d /proc/self ] || exit 0

marked() { # processes that carry the mark, as /proc/ID/FILE
    for file in $(grep -lE '^Max file locks +[0-9]' /proc/[0-9]*/limits); do
        while read -r a b c soft hard _; do
            if [ "$a $b $c" = 'Max file locks' ]; then
                for limit in "$soft" "$hard"; do
                    if [ "$limit" != unlimited ] && [ "$limit" -ge "$low" ] && [ "$limit" -le "$high" ]; then
                        echo "$file"
                    fi
                done
            fi
        done <"$file"
    done
    grep -laF "$variable" /proc/[0-9]*/environ
}

is_alive() {
    while read -r key state _; do
        if [ "$key" = State: ]; then [ "$state" != Z ] && [ "$state" != X ]; return; fi
    done <"/proc/$1/status"
    return 1
}

clean=0 looks=0
while [ "$clean" -lt 3 ] && [ "$looks" -lt 200 ]; do
    clean=$((clean + 1)) looks=$((looks + 1))
    for file in $(marked); do
        process=${file#/proc/} process=${process%/*}
        if [ "$process" != $$ ] && is_alive "$process"; then
            kill -9 "$process"
            clean=0
        fi
    done
done
