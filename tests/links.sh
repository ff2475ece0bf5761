#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every link of the documents leads somewhere: the file is there, inside the tree, and the heading of its #anchor too. Addresses on
# the network are judged by their form alone; nothing is fetched. A made-up document proves first that the checker sees what is wrong.
# Known are inline links and pictures, [text]: definitions, href, src and <address>, headings with # and underlined, id and name.
# Code, fenced, indented or in backquotes, holds no links.
src=${srcdir:-.}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
count=0
LC_ALL=C
export LC_ALL

ok() { count=$((count + 1)); echo "ok $count - $1"; }
not_ok() { count=$((count + 1)); echo "not ok $count - $1"; sed 's/^/# /' "$2"; }

# What of a document is not a block of code: 'N text', N being the number of the line.
cat > "$dir/prose.awk" <<'END'
function fence_of(line) { return match(line, /^ ? ? ?(```+|~~~+)/) ? substr(line, RSTART, RLENGTH) : "" }
{
	sub(/\r$/, "")
	mark = fence_of($0)
	sub(/^ +/, "", mark)
	if (fence) {
		if (mark && index(mark, fence) == 1 && $0 ~ /^ *[`~]+ *$/)
			fence = ""
		blank = 0
		next
	}
	if (mark) { fence = mark; next }
	if ($0 ~ /^(    |\t)/ && (blank || indented)) { indented = 1; next }
	if ($0 !~ /^[ \t]*$/) indented = 0
	blank = $0 ~ /^[ \t]*$/
	print NR, $0
}
BEGIN { blank = 1 }
END

# Links of prose: 'N link'. What stands behind a blank is a title.
cat > "$dir/links.awk" <<'END'
function each(text, pattern, from, to,    link) {
	while (match(text, pattern)) {
		link = substr(text, RSTART + from, RLENGTH - from - to)
		text = substr(text, RSTART + RLENGTH)
		sub(/^(href|src)="/, "", link)
		if (link ~ /^<.*>$/) link = substr(link, 2, length(link) - 2)
		else sub(/[ \t]+["'(].*$/, "", link)
		print number, link
	}
}
{
	number = $1
	sub(/^[0-9]+ /, "")
	while (match($0, /``[^`].*``/)) $0 = substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH)
	gsub(/`[^`]*`/, "`")
	each($0, "\\]\\([^)]*\\)", 2, 1)
	if (match($0, /^ ? ? ?\[[^]^][^]]*\]:[ \t]*/)) print number, substr($0, RSTART + RLENGTH)
	each($0, "(href|src)=\"[^\"]*\"", 0, 1)
	each($0, "<[a-z]+:[^>]*>", 1, 1)
}
END

# The anchors of prose, by the rule of GitHub: of a heading's text without its markup, letters, digits, _ and - stay, in lower case,
# blanks become hyphens, and everything else goes; the second of a name gets -1. Beyond ASCII: bytes of letters stay (capitals as
# they are), general punctuation, arrows and mathematical signs (U+2010 … U+2BFF) and the signs of Latin-1 go.
cat > "$dir/anchors.awk" <<'END'
function emit(text,    name, c) {
	gsub(/!?\[/, "[", text)
	while (match(text, /\]\([^)]*\)/)) text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
	gsub(/<[^<>]*>/, "", text)
	gsub(/\342[\200-\257][\200-\277]|\302[\200-\251\253-\264\266-\271\273-\277]|\303[\227\267]/, "", text)
	text = tolower(text)
	gsub(/[^a-z0-9_ \200-\377-]/, "", text)
	gsub(/ /, "-", text)
	name = text
	while (name in seen) name = text "-" ++again[text]
	seen[name] = 1
	print name
}
{
	sub(/^[0-9]+ /, "")
	line = $0
	while (match(line, /(id|name)="[^"]*"/)) {
		name = substr(line, RSTART, RLENGTH)
		gsub(/^[a-z]*="|"$/, "", name)
		print name
		line = substr(line, RSTART + RLENGTH)
	}
	if ($0 ~ /^ ? ? ?##?#?#?#?#?([ \t]|$)/) {
		sub(/^ *#+[ \t]*/, "")
		sub(/[ \t]+#*[ \t]*$/, "")
		emit($0)
		before = ""
	} else if ($0 ~ /^ ? ? ?(=+|-+)[ \t]*$/ && before != "") {
		emit(before)
		before = ""
	} else {
		before = $0 ~ /^[ \t]*$|^ ? ? ?[|>*+-]/ ? "" : $0
		gsub(/^[ \t]+|[ \t]+$/, "", before)
	}
}
END

prose() { awk -f "$dir/prose.awk" "$1"; }
anchors() { prose "$1" | awk -f "$dir/anchors.awk"; }

# wrong ROOT DOCUMENT: a line for each link of ROOT/DOCUMENT that is senseless or leads nowhere
wrong() {
	root=$(cd "$1" && pwd)
	prose "$1/$2" | awk -f "$dir/links.awk" | while read -r number link; do
		where="$2:$number: "
		case $link in
		http://* | https://*)
			echo "$link" | grep -qE '^https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?\.[a-z]+(:[0-9]+)?([/?#][^][:space:]<>"{}|\\^`[]*)?$' \
				|| echo "${where}senseless address $link"
			continue ;;
		mailto:?*@?*) continue ;;
		[a-z]*:*) echo "${where}unknown kind of address $link"; continue ;;
		/*) echo "${where}not a relative link: $link"; continue ;;
		'') echo "${where}empty link"; continue ;;
		esac
		file=${link%%#*}
		path=$1/$(dirname "$2")/$file
		test -n "$file" || path=$1/$2
		folder=$path
		test -d "$folder" || folder=$(dirname "$path")
		case $(cd "$folder" 2> /dev/null && pwd)/ in
		/) echo "${where}no folder for link $link"; continue ;;
		"$root"/*) ;;
		*) echo "${where}outside the tree: $link"; continue ;;
		esac
		if ! test -e "$path"; then
			echo "${where}no file for link $link"
		elif [ "$link" != "$file" ] && { test -d "$path" || ! anchors "$path" | grep -qxF -e "${link#*#}"; }; then
			echo "${where}no heading for link $link"
		fi
	done
}

# ---- The checker itself ----

mkdir -p "$dir/made/sub"
cat > "$dir/made/sub/other.md" <<'END'
Under lined
===========
## 4. Backends, `epg_plan` and [planning](x.md) ##
## Twice
## Twice
## αβ · “quoted” – and so → on
<a id="by-hand"></a>
```
## Not a heading
```
END
cat > "$dir/made/good.md" <<'END'
[a](sub/other.md) [b](sub/other.md#under-lined) [c](sub/other.md#4-backends-epg_plan-and-planning) [d](sub)
[e](sub/other.md#twice) [f](sub/other.md#twice-1) [g](sub/other.md#by-hand "with a title") ![h](sub/../sub/other.md)
[i](#here) [j](https://example.org/a?b=c#d) <https://example.org> <a href="sub/other.md#twice">k</a> `[no](link)` ``[`no`](link)``
[l](sub/other.md#αβ--quoted--and-so--on) [m][]

[m]: sub/other.md

    [no](link)

~~~
[no](link)
~~~
# Here
END
cat > "$dir/made/bad.md" <<'END'
# Here
[a](missing.md)
[b](sub/other.md#not-a-heading)
[c](#there)
[d](sub/other.md#twice-2) and [right](good.md) [e](nowhere/good.md)
[f](https://) [g](http://one_word) [h](https://example.org/<x>)
[i](../made.md) [j](/etc/passwd) [k](ftp://example.org/x) [l]()
![m](missing.svg)
[n]: missing.md
<a href="missing.html">o</a>
[p](sub#twice)
`code` [q](missing.md) `more`
END
wrong "$dir/made" good.md > "$dir/messages"
if test -s "$dir/messages"; then not_ok "what is right is found right" "$dir/messages"; else ok "what is right is found right"; fi
wrong "$dir/made" bad.md > "$dir/messages"
awk -F: '{ print $2 }' "$dir/messages" | tr '\n' ' ' > "$dir/numbers"
if [ "$(cat "$dir/numbers")" = "2 3 4 5 5 6 6 6 7 7 7 7 8 9 10 11 12 " ]; then
	ok "each of seventeen wrong links is found"
else
	not_ok "each of seventeen wrong links is found" "$dir/messages"
fi

# ---- The documents ----

for document in $(cd "$src" && echo README.md HACKING.md doc/*.md doc/perf/*.md examples/README.md); do
	wrong "$src" "$document" > "$dir/messages"
	if test -s "$dir/messages"; then not_ok "links of $document" "$dir/messages"; else ok "links of $document"; fi
done
echo "1..$count"
