# needs: git seq awk
# A repository of many commits, branches, a merge, packing, a clone, and what git says about it all.
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@example.org
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'

git init -q -b main repository
cd repository
git config gc.auto 0
for i in $(seq 1 40); do
    mkdir -p "d$((i % 7))"
    awk -v i="$i" 'BEGIN { for (n = 0; n < 200; n++) print n, (n * i) % 97, n % i }' >"d$((i % 7))/f$((i % 23)).txt"
    git add -A
    git commit -q -m "change $i"
done
git checkout -q -b side HEAD~20
for i in $(seq 1 10); do echo "side $i" >>side.txt; git add -A; git commit -q -m "side $i"; done
git checkout -q main
git merge -q -m merge side
git rev-parse HEAD 'HEAD^{tree}' side
git log --oneline --graph --stat -n 30
git diff --stat HEAD~30 | tail -3
git log -p | git hash-object --stdin
git blame d3/f3.txt | tail -3
git gc -q
git fsck --full --strict 2>&1
git count-objects -v | grep -E '^(count|packs|garbage)'
git clone -q --no-local . ../copy
git -C ../copy rev-parse HEAD
git -C ../copy log --format=%H | git hash-object --stdin
git grep -c '9 96' HEAD -- d1 | sort | head -5
git archive HEAD | tar -tf - | wc -l
