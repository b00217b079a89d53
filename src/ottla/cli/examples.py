"""Examples on the help pages and in docs/cli.md, at least two for each command. A test parses each of them."""

EXAMPLES = {
    "start": """\
ottla start --ephemeral                           # data in memory if possible, deleted on exit
ottla start --port 9192 --data /var/lib/ottla     # a different port and directory
ottla start server.properties                     # a Kafka config file
ottla start --set num.partitions=4 --set log.segment.bytes=104857600
ottla start --host 0.0.0.0 --advertise broker.example.org    # accept clients on other machines""",
    "version": """\
ottla version
ottla --version""",
    "topic create": """\
ottla topic create orders
ottla topic create orders --partitions 6 --config retention.ms=86400000""",
    "topic list": """\
ottla topic list
ottla topic list --internal --json""",
    "topic describe": """\
ottla topic describe orders
ottla topic describe orders payments --under-replicated""",
    "topic alter": """\
ottla topic alter orders --partitions 12
ottla topic alter orders --config cleanup.policy=compact --unset retention.ms""",
    "topic delete": """\
ottla topic delete orders
ottla topic delete orders payments --if-exists --yes""",
    "produce": """\
echo hello | ottla produce greetings
ottla produce orders lines.txt --keys --key-separator :
ottla produce orders --key ada --value bread --header shop=north
ottla consume orders --json | ottla produce copy --json
ottla consume orders --headers --keys | ottla produce copy --headers --keys
ottla produce orders lines.json --registry http://localhost:8081 --schema order.avsc""",
    "consume": """\
ottla consume greetings
ottla consume orders --follow --keys --offsets
ottla consume orders --from -10 --json      # the last 10 records of each partition
ottla consume orders --format '%t %p %o %k %s\\n'
ottla consume orders --registry http://localhost:8081
ottla consume orders --group kitchen        # continue at the committed offsets, then commit""",
    "wait": """\
ottla wait                                  # until 127.0.0.1:9092 serves
ottla wait --topic orders --topic payments --timeout 60""",
    "profile set": """\
ottla profile set staging bootstrap.servers=broker.example.org:9092
ottla profile set staging linger.ms=20 --unset client.id    # use it with --profile staging""",
    "profile list": """\
ottla profile list
ottla profile list --json""",
    "profile show": """\
ottla profile show staging
ottla profile show staging --json""",
    "profile delete": """\
ottla profile delete staging
ottla profile delete staging production""",
    "group list": """\
ottla group list
ottla group list --state Stable --state Empty""",
    "group describe": """\
ottla group describe kitchen
ottla group describe kitchen --json""",
    "group lag": """\
ottla group lag kitchen
ottla group lag --follow --interval 5       # all groups, refreshed every 5 seconds""",
    "group reset-offsets": """\
ottla group reset-offsets kitchen --topic orders --to-earliest             # show the changes
ottla group reset-offsets kitchen --topic orders --to-earliest --execute
ottla group reset-offsets kitchen --all-topics --by-duration 1h30m --execute""",
    "group delete": """\
ottla group delete kitchen
ottla group delete kitchen bakery --yes""",
    "config describe": """\
ottla config describe topic orders
ottla config describe broker 1 --all""",
    "config set": """\
ottla config set topic orders retention.ms=86400000
ottla config set broker default log.cleaner.threads=2 --dry-run""",
    "config unset": """\
ottla config unset topic orders retention.ms
ottla config unset topic orders retention.ms cleanup.policy""",
    "cluster describe": """\
ottla cluster describe
ottla cluster describe --bootstrap broker.example.org:9092 --json""",
    "log dump": """\
ottla log dump ottla-data/orders-0 --records
ottla log dump ottla-data/orders-0/00000000000000000000.log --json""",
    "log verify": """\
ottla log verify ottla-data
ottla log verify /var/lib/kafka/orders-0 --json""",
    "log stats": """\
ottla log stats ottla-data
ottla log stats ottla-data --quick""",
    "perf produce": """\
ottla perf produce load --records 1000000 --size 100
ottla perf produce load --compression lz4 --linger 5""",
    "perf consume": """\
ottla perf consume load
ottla perf consume load --records 100000 --json""",
    "perf latency": """\
ottla perf latency load
ottla perf latency load --records 5000 --acks 1""",
    "format": """\
ottla format --data /var/lib/ottla
ottla format server.properties --cluster-id MkU3OEVBNTcwNTJENDM2Qg""",
    "completion": """\
eval "$(ottla completion bash)"             # for the current shell only
ottla completion fish > ~/.config/fish/completions/ottla.fish""",
    "demo": """\
ottla demo
ottla demo pipeline --seconds 60""",
}
"""Lines by command."""
