#!/usr/bin/env bash
# hosts.sh - several hosts on one machine: mpirun across network namespaces.
#
#   hosts.sh -n HOSTS [-s SLOTS] [-c HOST:SECONDS] -- MPIRUN-ARGUMENTS...
#
# Each host is a network namespace with one interface (eth0, a private address) and a host name of its
# own; a bridge in another namespace connects them. mpirun runs on host 0 with SLOTS slots (default 1)
# a host and starts its daemons through a launch agent that enters the namespaces. -c cuts a host off
# after so many seconds. Ends with mpirun's status, and removes what it made, also when it is killed by
# a signal that can be caught; --clean removes what dead runs left. 77: not possible here, and why.
#
# SPDX-License-Identifier: BSD-3-Clause
set -u
hosts=2 slots=1 cut="" name=gph$$

say() { printf 'hosts.sh: %s\n' "$*" >&2; }
not_here() { say "$*"; exit 77; }

# Remove the namespaces of run $1 (gphPID).
remove() {
    local n all
    all=$(ip netns list 2>/dev/null | awk '{ print $1 }' | grep "^$1-")
    # Twice: a launcher may have started something in between.
    for n in $all $all; do
        ip netns pids "$n" 2>/dev/null | xargs -r kill -9 2>/dev/null
    done
    for n in $all; do
        ip netns delete "$n" 2>/dev/null
    done
}

clean() {
    local run
    for run in $(ip netns list 2>/dev/null | sed -n 's/^\(gph[0-9]*\)-.*/\1/p' | sort -u); do
        [ -d "/proc/${run#gph}" ] || remove "$run"
    done
}

while [ $# -gt 0 ]; do
    case $1 in
    -n) hosts=$2 && shift 2 ;;
    -s) slots=$2 && shift 2 ;;
    -c) cut=$2 && shift 2 ;;
    --clean) clean && exit 0 ;;
    --) shift && break ;;
    *) say "unknown option $1" && exit 2 ;;
    esac
done
[ "$(id -u)" = 0 ] || not_here "needs root, for network namespaces"
for tool in ip nsenter unshare mpirun; do
    command -v "$tool" >/dev/null 2>&1 || not_here "no $tool"
done
clean

work=$(mktemp -d) || exit 1
cutter=""
# shellcheck disable=SC2317 # called by the trap
finish() {
    [ -z "$cutter" ] || kill "$cutter" 2>/dev/null
    remove "$name"
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

subnet=10.213.$(($$ % 250))
{
    ip netns add "$name-net" && ip -n "$name-net" link add br0 type bridge \
        && ip -n "$name-net" link set br0 up
} 2>"$work/error" || not_here "no namespaces: $(cat "$work/error")"
list=""
for ((i = 0; i < hosts; i++)); do
    {
        ip netns add "$name-$i" && ip -n "$name-$i" link set lo up \
            && ip link add "v$$-$i" netns "$name-net" type veth peer name eth0 netns "$name-$i" \
            && ip -n "$name-net" link set "v$$-$i" master br0 up \
            && ip -n "$name-$i" address add "$subnet.$((i + 1))/24" dev eth0 \
            && ip -n "$name-$i" link set eth0 up
    } 2>"$work/error" || not_here "no network: $(cat "$work/error")"
    list="$list${list:+,}$name-$i:$slots"
done

# enter HOST COMMAND...: run it there; the agent gets a command line to be read by a shell.
cat >"$work/enter" <<'EOF'
#!/bin/sh
host=$1
shift
exec nsenter --net="/run/netns/$host" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$host" "$@"
EOF
cat >"$work/agent" <<EOF
#!/bin/sh
host=\$1
shift
exec "$work/enter" "\$host" sh -c "\$*"
EOF
chmod +x "$work/enter" "$work/agent"

if [ -n "$cut" ]; then
    (sleep "${cut#*:}" && ip -n "$name-net" link set "v$$-${cut%:*}" down) &
    cutter=$!
fi
# With more ranks than cores, ranks that spin would starve the kernel's network thread.
"$work/enter" "$name-0" mpirun --host "$list" --mca plm_rsh_agent "$work/agent" \
    --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 \
    --mca orte_keep_fqdn_hostnames 1 --bind-to none "$@" &
child=$!
wait "$child"
exit $?
