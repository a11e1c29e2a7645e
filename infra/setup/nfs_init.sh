#!/bin/busybox sh
# The first process of the machine of nfs.sh: one NFS server, two clients in network namespaces of their own, which share no cache, and
# one mount through a proxy that loses answers. Runs the tests and says how they ended.
/bin/busybox mkdir -p /proc /sys /dev /run /tmp /srv /bb /etc /var/lib/nfs/v4recovery
/bin/busybox --install -s /bb
export PATH=/usr/bin:/usr/sbin:/sbin:/bin:/bb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
for module in sunrpc auth_rpcgss nfsd nfsv3 nfsv4 veth brd; do modprobe "$module"; done
echo "127.0.0.1 localhost" > /etc/hosts
: > /etc/exports
printf 'root:x:0:0::/:/bb/sh\n_rpc:x:100:100::/run/rpcbind:/bb/false\n' > /etc/passwd
echo 'root:x:0:' > /etc/group

# The shell prefers its own applets to programs on the path, hence full paths where they differ.
/bin/ip link set lo up
mkfs.ext4 -q /dev/ram0
mount -t ext4 -o i_version /dev/ram0 /srv
mount -t nfsd nfsd /proc/fs/nfsd
mkdir -p /run/rpcbind
rpcbind -w
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
# The proxy's calls come from a high port.
exportfs -o rw,sync,insecure,no_root_squash,no_subtree_check,fsid=1 '*:/srv'
rpc.mountd -p 20048
rpc.nfsd 4

# client NAME NUMBER: the server knows clients by host name.
client() {
    mkdir -p "/mnt/$1"
    hostname "$1"
    /bin/ip netns add "$1"
    /bin/ip link add "v$1" type veth peer name "w$1"
    /bin/ip link set "w$1" netns "$1"
    /bin/ip addr add "10.0.$2.1/24" dev "v$1"
    /bin/ip link set "v$1" up
    /bin/ip -n "$1" addr add "10.0.$2.2/24" dev "w$1"
    /bin/ip -n "$1" link set "w$1" up
    /bin/ip -n "$1" link set lo up
    nsenter --net="/run/netns/$1" timeout 60 mount.nfs "10.0.$2.1:/srv" "/mnt/$1" -o vers=4.2
}
client one 1
client two 2
mkdir -p /mnt/lossy
python3 /test/lossy.py 3049 2049 > /tmp/lossy.log &
while ! grep -q listening /tmp/lossy.log; do sleep 0.1; done
timeout 60 mount.nfs 127.0.0.1:/srv /mnt/lossy -o vers=3,nolock,proto=tcp,port=3049,mountport=20048,mountproto=tcp

printf '\nnfs: kernel %s\n' "$(uname -r)"
grep ' nfs' /proc/mounts | grep /mnt/
export ROLLMILL_TEST_NFS=/mnt/one:/mnt/two:/mnt/lossy ROLLMILL_REQUIRE=nfs RUST_BACKTRACE=0
/test/conformance nfs_
code=$?
echo "nfs: answers lost: $(grep -c '^lost' /tmp/lossy.log)"
echo "nfs: the tests ended with $code"
poweroff -f
