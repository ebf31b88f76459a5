#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl top on terminals of 80x24 and 120x40, of a volume with the longest name that has lost a tier: bars stand below each other, and nothing is cut off. The report's pictures are well-formed.
# vm: mode=functional cpus=1 memory=1G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

name=a_volume_with_the_longest_name_that_a_volume_can_have_012345678
check_eq "letters" ${#name} 63
vol_models 1 fast:64 warm:64 slow:512
load_terrace
terracectl format --force --name $name --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "nvme:slots:atomic=${VOL_DRIVES[1]}" \
	--tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" > /dev/null
terracectl activate "${VOL_DRIVES[@]}" > /dev/null
dd if=/dev/urandom of=/dev/mapper/$name bs=1M count=24 oflag=direct status=none
terracectl move --to 2 $name 0-2047 > /dev/null
terracectl deactivate $name
terracectl activate --degraded "${VOL_DRIVES[0]}" "${VOL_DRIVES[2]}" > /dev/null
(while dd if=/dev/mapper/$name of=/dev/null bs=64k count=64 iflag=direct status=none; do :; done) 2> /dev/null &
reader=$!

# frame COLUMNS ROWS: what stands on the terminal after two looks
frame() {
	timeout 20 script -qec "stty cols $1 rows $2; timeout -s INT 3 $TERRACE_TREE/build/terracectl top --every 0.5 $name" /dev/null > /dev/shm/frames || true
	/usr/bin/python3 -ISc '
import re, sys
frames = open("/dev/shm/frames", errors="replace", newline="").read().split("\x1b[2J")
print(re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\r", "", frames[-1]).rstrip())' > "$OUT/top-$1x$2"
}
for size in "80 24" "120 40" "200 60"; do
	# shellcheck disable=SC2086 # two words
	frame $size
done
kill $reader
cat "$OUT/top-80x24"
/usr/bin/python3 -IS - "$OUT"/top-* <<-'EOT' || die "top does not look right"
	import re, sys
	names = {}
	for path in sys.argv[1:]:
	    lines = names[path] = open(path).read().split('\n')
	    columns, rows = map(int, re.search(r'(\d+)x(\d+)$', path).groups())
	    assert len(lines) <= rows, (path, len(lines))
	    assert max(map(len, lines)) < min(columns, 80), (path, max(lines, key=len))
	    bars = [l for l in lines if '[' in l]
	    assert len(bars) == 3 and len({(l.index('['), l.index(']'), l.index('%')) for l in bars}) == 1, bars
	    assert sum('MISSING' in l for l in bars) == 1, bars
	    cells = [l for l in lines if re.match(r'  (fast|used)  ', l)]
	    assert len({len(l) for l in cells}) == 1 and len(cells) == 2, cells
	    assert "'a_volume_with_the_longest_name_that_a_volume_can_have_012345678'" in lines[0], lines[0]
	# as much of it on a small terminal as on a large one; a forecast is there while a tier fills, which one may do in one frame only
	steady = {p: [l for l in lines if not l.startswith('  forecast ')] for p, lines in names.items()}
	assert len({len(lines) for lines in steady.values()}) == 1, {p: len(l) for p, l in names.items()}
EOT
terracectl report --seconds 2 --every 0.5 --output "$OUT/report.html" $name > /dev/null
/usr/bin/python3 -IS - "$OUT/report.html" <<-'EOT' || die "the report is no good"
	import re, sys, xml.etree.ElementTree
	text = open(sys.argv[1]).read()
	plots = re.findall(r'<svg.*?</svg>', text, re.S)
	assert plots
	for plot in plots:
	    root = xml.etree.ElementTree.fromstring(plot)
	    width = float(root.get('viewBox').split()[2])
	    for label in root.iter('text'):
	        assert 0 <= float(label.get('x')) <= width, (label.attrib, label.text, width)
	assert 'a_volume_with_the_longest_name' in text
EOT
terracectl deactivate $name
pass "top, report"
