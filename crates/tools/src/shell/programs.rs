//! What is known about programs: their flags and what their operands are. Data only.
//!
//! The tables list every flag of GNU coreutils 9.1, grep 3.8, findutils 4.9, ripgrep 14, file 5.44,
//! tree 2.1 and the diff and revision flags of git 2.47 that does no more than look; in the notation of
//! [`super::flags`]. A flag that is not listed asks. Flags with `!` are listed so that their abbreviations
//! and values are understood.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::flags::{FlagSyntax, FlagTable};

/// How the words of a program are understood.
pub(crate) struct KnownProgram {
    pub(crate) flags: FlagTable,
    pub(crate) flag_syntax: FlagSyntax,
    pub(crate) grammar: Grammar,
}

/// What the words after the program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// Operands are paths.
    Paths,
    /// A program that is not known itself: operands, and the values of flags, may be paths.
    Unknown,
    /// Operands are only text.
    Text,
    /// All words are only text, also those that look like flags.
    AllText,
    /// The first operand is a pattern, unless one of these flags is there; all others are paths.
    Pattern { unless: &'static [&'static str] },
    /// One path is read, a second one would be written.
    OneInput,
    /// Formats that begin with `+`; anything else would set the clock.
    Format,
    /// The expressions of `find`.
    Find,
    /// Subcommands behind global flags, then revisions and paths.
    Git,
}

/// The programs that the preset for reading lists, but for `git`.
pub(crate) const READERS: [&str; 19] = [
    "ls", "cat", "head", "tail", "grep", "rg", "find", "wc", "file", "stat", "du", "sort", "uniq", "cut",
    "tree", "pwd", "date", "whoami", "echo",
];

/// The subcommands of `git` that only read.
pub(crate) const GIT_READERS: [&str; 4] = ["status", "log", "diff", "show"];

const HELP: &str = "--help --version";

const LS: &str = "-aAbBcCdDfFgGhHiklmnNopqQrRsStuUvxXZ1 +-L -I= -T= -w= --all --almost-all --author --escape \
    --block-size= --ignore-backups --color? --directory --dired --classify? --file-type --format= --full-time \
    --group-directories-first --no-group --human-readable --si --dereference-command-line \
    --dereference-command-line-symlink-to-dir --hide= --hyperlink? --indicator-style= --inode --ignore= \
    --kibibytes +--dereference --numeric-uid-gid --literal --hide-control-chars --show-control-chars \
    --quote-name --quoting-style= --reverse --recursive --size --sort= --time= --time-style= --tabsize= \
    --width= --context --zero";

const CAT: &str = "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs \
    --show-nonprinting";

const HEAD: &str = "-qvz0123456789 -c= -n= --bytes= --lines= --quiet --silent --verbose --zero-terminated";

const TAIL: &str = "-fFqvz0123456789 -c= -n= -s= --bytes= --follow? --lines= --max-unchanged-stats= --pid= \
    --quiet --silent --retry --sleep-interval= --verbose --zero-terminated";

const GREP: &str = "-EFGPivwxyzsbnHhoqaILlcTZUuVr0123456789 +-R -e= -f@ -m= -d= -D= -A= -B= -C= \
    --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp= --file@ --ignore-case \
    --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match --max-count= \
    --byte-offset --line-number --line-buffered --with-filename --no-filename --label= --only-matching \
    --quiet --silent --binary-files= --text --directories= --devices= --recursive +--dereference-recursive \
    --include= --exclude= --exclude-from@ --exclude-dir= --files-without-match --files-with-matches --count \
    --initial-tab --null --before-context= --after-context= --context= --group-separator= \
    --no-group-separator --color? --color? --binary --unix-byte-offsets";

const RG: &str = "-abcFHhiIlnNopPqsSuUvVwx0. +-L -e= -f@ -g= -t= -T= -m= -A= -B= -C= -E= -M= -r= -j= -d= !-z \
    --regexp= --file@ --glob= --iglob= --type= --type-not= --type-add= --type-clear= --type-list --files \
    --files-with-matches --files-without-match --count --count-matches --line-number --no-line-number \
    --column --no-column --heading --no-heading --with-filename --no-filename --ignore-case --smart-case \
    --case-sensitive --fixed-strings --no-fixed-strings --word-regexp --line-regexp --invert-match \
    --only-matching --replace= --multiline --no-multiline --multiline-dotall --no-multiline-dotall --pcre2 \
    --no-pcre2 --auto-hybrid-regex --engine= --max-count= --max-depth= --maxdepth= --max-filesize= \
    --max-columns= --max-columns-preview --after-context= --before-context= --context= --context-separator= \
    --no-context-separator --field-context-separator= --field-match-separator= --passthru --hidden \
    --no-hidden --no-ignore --ignore --no-ignore-vcs --no-ignore-parent --no-ignore-dot --no-ignore-exclude \
    --no-ignore-files --no-ignore-global --no-ignore-messages --ignore-file@ --ignore-file-case-insensitive \
    --require-git --no-require-git --glob-case-insensitive --unrestricted --text --no-text --binary \
    --no-binary --encoding= --no-encoding --crlf --no-crlf --null --null-data --color= --colors= --pretty \
    --vimgrep --json --no-json --stats --no-stats --quiet --trim --no-trim --sort= --sortr= --sort-files \
    --threads= --mmap --no-mmap --line-buffered --block-buffered --byte-offset --no-byte-offset \
    --include-zero --dfa-size-limit= --regex-size-limit= --one-file-system --no-one-file-system --no-messages \
    --messages --no-config --no-follow --path-separator= --stop-on-nonmatch --no-unicode --unicode \
    --no-pre --no-search-zip --pcre2-version --debug --trace +--follow !--search-zip !--pre= !--pre-glob= \
    !--hostname-bin= !--hyperlink-format= !--generate=";

const WC: &str = "-cmlLw --bytes --chars --lines --max-line-length --words --total= !--files0-from=";

const FILE: &str = "-bcdEhiklLnNrv0 -e= -F= -P= !-m= !-f= !-p !-C !-s !-S !-z !-Z --brief --checking-printout \
    --exclude= --exclude-quiet= --separator= --mime --apple --extension --mime-type --mime-encoding \
    --keep-going --list --dereference --no-dereference --no-buffer --no-pad --print0 !--preserve-date \
    --parameter= --raw --debug !--magic-file= !--files-from= !--compile !--special-files !--no-sandbox \
    !--uncompress !--uncompress-noreport";

const STAT: &str = "-Lft -c= --dereference --file-system --cached= --format= --printf= --terse";

const DU: &str = "-0abcDHhklmPSsx +-L -B= -d= -t= -X@ --null --all --apparent-size --block-size= --bytes --total \
    --dereference-args --max-depth= !--files0-from= --human-readable --inodes +--dereference --count-links \
    --no-dereference --separate-dirs --si --summarize --threshold= --time? --time-style= --exclude-from@ \
    --exclude= --one-file-system";

const SORT: &str = "-bdfgiMhnRrVcCmsuz -k= -t= -S= !-o= !-T= --ignore-leading-blanks --dictionary-order \
    --ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort \
    --numeric-sort --random-sort --random-source@ --reverse --sort= --version-sort --batch-size= --check? \
    !--compress-program= --debug !--files0-from= --key= --merge !--output= --stable --buffer-size= \
    --field-separator= !--temporary-directory= --parallel= --unique --zero-terminated";

const UNIQ: &str = "-cdDiuz0123456789 -f= -s= -w= --count --repeated --all-repeated? --skip-fields= --group? \
    --ignore-case --skip-chars= --unique --zero-terminated --check-chars=";

const CUT: &str = "-nsz -b= -c= -d= -f= --bytes= --characters= --delimiter= --fields= --complement \
    --only-delimited --output-delimiter= --zero-terminated";

const TREE: &str = "-adfixpsugDFqNQhcUrtvnCASJX +-l -L= -P= -I= -H= -T= !-o= !-R --gitignore --gitfile@ \
    --ignore-case --matchdirs --metafirst --prune --info --infofile@ --noreport --charset= --filelimit= --si \
    --du --timefmt= --sort= --dirsfirst --filesfirst --inodes --device --nolinks --hintro@ --houtro@ \
    --fflinks !--fromfile !--fromtabfile --filesync --opt-toggle";

const DATE: &str = "-Ru -d= -f@ -I? -r@ !-s= --date= --debug --file@ --iso-8601? --resolution --rfc-email \
    --rfc-2822 --rfc-822 --rfc-3339= --reference@ !--set= --utc --uct --universal";

const PWD: &str = "-LP --logical --physical";

/// The words of `find` expressions: tests and actions, with what follows them.
pub(crate) const FIND: &str = "--daystart --follow --nowarn --regextype= --warn --depth --d --maxdepth= \
    --mindepth= --mount --noleaf --xdev --ignore_readdir_race --noignore_readdir_race --amin= --anewer@ \
    --atime= --cmin= --cnewer@ --context= --ctime= --empty --false --fstype= --gid= --group= --ilname= \
    --iname= --inum= --iwholename= --ipath= --iregex= --links= --lname= --mmin= --mtime= --name= --newer@ \
    --nouser --nogroup --path= --perm= --regex= --readable --writable --executable --wholename= --samefile@ \
    --size= --true --type= --uid= --used= --user= --xtype= --print --print0 --printf= --ls --prune --quit \
    --a --and --o --or --not --newermt= --newerat= --newerct= --newerBt= --help --version";

/// The global flags of `git`.
pub(crate) const GIT: &str = "-P -C@ --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs \
    --noglob-pathspecs --icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice !-p !--paginate \
    !-c= !--exec-path? !--html-path !--man-path !--info-path !--git-dir= !--work-tree= !--namespace= !--bare \
    !--config-env= !--super-prefix= !--attr-source= !--list-cmds= !-h !--help !-v !--version";

const GIT_STATUS: &str = "-vsbz -u? -M? --verbose --no-verbose --short --no-short --branch --no-branch \
    --show-stash --no-show-stash --ahead-behind --no-ahead-behind --porcelain? --long --no-long --null \
    --untracked-files? --no-untracked-files --ignored? --no-ignored !--ignore-submodules? --column? \
    --no-column --no-renames --renames --find-renames? !--help !-h";

const GIT_DIFF: &str = "-pusabwzRWDq -U? -B? -M? -C? -l= -S= -G= -I= -O@ -X? --patch --no-patch --unified? \
    --function-context --no-function-context --raw --patch-with-raw --patch-with-stat --numstat --shortstat \
    --dirstat? --cumulative --dirstat-by-file? --check --summary --name-only --name-status --stat? \
    --stat-width= --stat-name-width= --stat-graph-width= --stat-count= --compact-summary \
    --no-compact-summary --binary --full-index --no-full-index --color? --no-color --ws-error-highlight= \
    --abbrev? --no-abbrev --src-prefix= --dst-prefix= --line-prefix= --no-prefix --default-prefix \
    --inter-hunk-context= --output-indicator-new= --output-indicator-old= --output-indicator-context= \
    --break-rewrites? --find-renames? --irreversible-delete --find-copies? --find-copies-harder \
    --no-find-copies-harder --no-renames --rename-empty --no-rename-empty --follow --no-follow --minimal \
    --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines \
    --ignore-matching-lines= --indent-heuristic --no-indent-heuristic --patience --histogram \
    --diff-algorithm= --anchored= --word-diff? --word-diff-regex= --color-words? --color-moved? \
    --no-color-moved --color-moved-ws= --no-color-moved-ws --relative? --no-relative --text --no-text \
    --exit-code --no-exit-code --quiet --no-quiet --no-ext-diff --no-textconv --ita-invisible-in-index \
    --ita-visible-in-index --pickaxe-all --pickaxe-regex --rotate-to= --skip-to= --find-object= \
    --diff-filter= --cached --staged --merge-base --cc -c --combined-all-paths --base --ours --theirs -0123 \
    !--ext-diff !--textconv !--output= !--no-index !--submodule? !--ignore-submodules? !--help !-h";

const GIT_LOG: &str = "-trgimE -FP -n= -L= -0123456789 --oneline --format? --pretty? --max-count= --skip= --since= \
    --after= --since-as-filter= --until= --before= --author= --committer= --grep= --grep-reflog= --all-match \
    --invert-grep --regexp-ignore-case --basic-regexp --extended-regexp --fixed-strings --perl-regexp \
    --remove-empty --merges --no-merges --min-parents? --max-parents? --no-min-parents --no-max-parents \
    --first-parent --exclude-first-parent-only --not --all --branches? --tags? --remotes? --glob= --exclude= \
    --exclude-hidden= --reflog --ignore-missing --cherry --cherry-mark --cherry-pick --left-only \
    --right-only --left-right --walk-reflogs --merge --boundary --simplify-by-decoration --show-pulls \
    --full-history --dense --sparse --simplify-merges --ancestry-path? --date-order --author-date-order \
    --topo-order --reverse --no-walk? --do-walk --abbrev-commit --no-abbrev-commit --encoding= \
    --expand-tabs? --no-expand-tabs --notes? --no-notes --show-notes? --relative-date --date= --parents \
    --children --graph --no-graph --show-linear-break? --decorate? --no-decorate --decorate-refs= \
    --decorate-refs-exclude= --clear-decorations --source --use-mailmap --no-use-mailmap --mailmap \
    --no-mailmap --full-diff --log-size --diff-merges= --no-diff-merges !--remerge-diff --dd --root --raw \
    --no-show-signature !--show-signature !--alternate-refs !--stdin";

/// Returns what is known about a program.
pub(crate) fn program(name: &str) -> Option<&'static KnownProgram> {
    static PROGRAMS: LazyLock<BTreeMap<&str, KnownProgram>> = LazyLock::new(programs);
    PROGRAMS.get(name)
}

/// Returns the flags of a subcommand of `git` that only reads.
pub(crate) fn git_subcommand(name: &str) -> Option<&'static FlagTable> {
    static SUBCOMMANDS: LazyLock<BTreeMap<&str, FlagTable>> = LazyLock::new(|| {
        let log = format!("{GIT_DIFF} {GIT_LOG}");
        let all = [("status", GIT_STATUS), ("diff", GIT_DIFF), ("log", &log), ("show", &log)];
        all.into_iter().map(|(name, flags)| (name, table(flags))).collect()
    });
    SUBCOMMANDS.get(name)
}

/// Returns the words of `find`. They begin with one dash; the table writes two, as they are never clusters.
pub(crate) fn find_flags() -> &'static FlagTable {
    static WORDS: LazyLock<FlagTable> = LazyLock::new(|| table(FIND));
    &WORDS
}

fn table(text: &str) -> FlagTable {
    // A test reads every table, so an entry that cannot be read does not get this far.
    FlagTable::read(text).unwrap_or_default()
}

fn programs() -> BTreeMap<&'static str, KnownProgram> {
    use FlagSyntax::{Exact, Gnu, NextWords, UpToOperand};
    use Grammar::{AllText, Find, Format, Git, OneInput, Paths, Pattern, Text};
    let grep = Pattern { unless: &["-e", "--regexp", "-f", "--file"] };
    let rg = Pattern {
        unless: &[
            "-e",
            "--regexp",
            "-f",
            "--file",
            "--files",
            "--type-list",
            "--pcre2-version",
            "--generate",
        ],
    };
    let known = [
        ("ls", LS, Gnu, Paths),
        ("cat", CAT, Gnu, Paths),
        ("head", HEAD, Gnu, Paths),
        ("tail", TAIL, Gnu, Paths),
        ("grep", GREP, Gnu, grep),
        ("rg", RG, Exact, rg),
        ("find", "", Exact, Find),
        ("wc", WC, Gnu, Paths),
        ("file", FILE, Gnu, Paths),
        ("stat", STAT, Gnu, Paths),
        ("du", DU, Gnu, Paths),
        ("sort", SORT, Gnu, Paths),
        ("uniq", UNIQ, Gnu, OneInput),
        ("cut", CUT, Gnu, Paths),
        ("tree", TREE, NextWords, Paths),
        ("pwd", PWD, Gnu, Text),
        ("date", DATE, Gnu, Format),
        ("whoami", "", Gnu, Text),
        ("echo", "", Exact, AllText),
        ("git", GIT, UpToOperand, Git),
    ];
    let program = |(name, flags, reading, grammar): (_, &str, _, _)| {
        let helped = if grammar == Git { flags.to_owned() } else { format!("{flags} {HELP}") };
        (name, KnownProgram { flags: table(&helped), flag_syntax: reading, grammar })
    };
    known.into_iter().map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_can_be_read() {
        for text in [
            LS, CAT, HEAD, TAIL, GREP, RG, WC, FILE, STAT, DU, SORT, UNIQ, CUT, TREE, DATE, PWD, FIND, GIT,
            GIT_STATUS, GIT_DIFF, GIT_LOG, HELP,
        ] {
            FlagTable::read(text).unwrap();
        }
        assert!(READERS.iter().all(|name| program(name).is_some()));
        assert!(GIT_READERS.iter().all(|name| git_subcommand(name).is_some()));
    }
}
