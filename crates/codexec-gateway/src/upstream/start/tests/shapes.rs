//! Command lines as users write them.

use super::*;

/// Each makes a server of something in the project.
const CODE: &str = "
    sh -c cd_~/project_&&_python3_srv.py
    sh -c cd_$HOME/project_&&_python3_srv.py
    sh -c cd_\"${HOME}/project\"_&&_python3_srv.py
    sh -c cd_${DIR:-PROJECT}_&&_python3_srv.py
    sh -c cd_--_PROJECT_&&_python3_srv.py
    sh -c cd_project_&&_python3_srv.py
    sh -c cd_HOME/trusted_&&_sh_../project/run
    sh -c cd_trusted/..;_sh_./project/run
    DIR=PROJECT sh -c python3_$DIR/srv.py
    LINE=node_PROJECT/app sh -c eval_$LINE
    cwd=/ sh -c cd_HOME_&&_sh_project/run
    bash -lc pushd_PROJECT;_run
    bash -c source_PROJECT/.venv/bin/activate;_server
    sh -c node_PROJECT/app
    sh -c node_PROJECT/app/index
    sh -c python3_PROJECT/srvmod
    sh -c sh_PROJECT/run
    sh -c ._PROJECT/run
    sh -c PYTHONPATH=PROJECT_python3_-m_x
    sh -c exec_sh_HOME/folder/run
    sh -ec (PROJECT/run)
    sh -o pipefail -c sh_'PROJECT/run'
    sh -c cat_PROJECT/*.js|node
    sh -c sh_<PROJECT/run
    sh PROJECT/run
    bash -x PROJECT/run
    bash --rcfile PROJECT/rc -i
    cwd=PROJECT sh run
    cwd=PROJECT sh -c sh_run
    cwd=PROJECT sh -c node_-e_1
    cwd=PROJECT sh -c python3_-m_x
    cwd=PROJECT sh -c bin/run
    cwd=PROJECT sh -c ._run
    cwd=PROJECT sh -c source_run
    cwd=PROJECT sh -c $(cat_run)
    cwd=PROJECT sh -c exec_docker_compose_up
    cwd=PROJECT env A=b server

    env PYTHONPATH=PROJECT python3 -m x
    env --chdir=PROJECT x
    env -C PROJECT x
    env -S python3_PROJECT/srv
    xargs -a /dev/null sh PROJECT/run
    script -qc python3_PROJECT/srv.py
    nice -n 5 node PROJECT/app
    timeout 10 python3 PROJECT/srvmod
    sudo -E node PROJECT/app
    wrapper -- node PROJECT/app
    wrapper node PROJECT/app
    wrapper --stdio node_PROJECT/app
    wrapper --stdio=node_PROJECT/app
    server --plugin PROJECT/server.js:main

    npx -y PROJECT
    npx -y file:PROJECT
    npx -y pkg@file:PROJECT
    npx -y pkg@PROJECT
    npx --package=PROJECT my-server
    npx -p PROJECT my-server
    npx --prefix PROJECT my-server
    npx -c sh_PROJECT/run
    npx -y tsx PROJECT/app
    npx -y tsx@4.1 PROJECT/app
    npx -y supergateway --stdio node_PROJECT/app
    npm exec PROJECT
    npm --prefix PROJECT start
    npm run start --prefix PROJECT
    npm -C PROJECT start
    bunx PROJECT
    bun x PROJECT
    pnpm dlx PROJECT
    pnpm --dir PROJECT start
    yarn dlx PROJECT
    yarn --cwd PROJECT start
    uvx PROJECT
    uvx --from PROJECT srv
    uvx --from=PROJECT srv
    uvx --from file://PROJECT srv
    uvx --from git+file://PROJECT srv
    uvx --from srv@file://PROJECT srv
    uvx --with PROJECT srv
    uvx --with-editable PROJECT srv
    uvx --with=mcp,PROJECT srv
    uvx --env-file PROJECT/.env srv
    uvx python PROJECT/srvmod
    uvx fastmcp run PROJECT/srv.py:mcp
    uv tool run --from PROJECT srv
    uv --directory PROJECT run srv
    uv --directory project run srv
    uv run --project PROJECT srv
    uv run --with mcp mcp run PROJECT/srv.py
    uv run PROJECT/srv
    uv run -- python PROJECT/srvmod
    uv run bash -c sh_PROJECT/run
    pipx run --spec PROJECT srv
    pipx run PROJECT
    go run PROJECT
    go -C PROJECT run .
    deno run -A PROJECT/x
    deno run --config PROJECT/deno.json HOME/home.js
    deno serve PROJECT/x
    deno eval import('PROJECT/x')
    bun PROJECT/x
    bun run PROJECT/x
    bun --cwd=PROJECT run x
    fastmcp run PROJECT/srv.py:mcp

    node PROJECT/app
    node --env-file=PROJECT/.env HOME/home.js
    node --env-file PROJECT/.env HOME/home.js
    node --no-warnings PROJECT/app
    node --unknown x PROJECT/app
    node --experimental-loader HOME/x.mjs PROJECT/app
    bash -O extglob PROJECT/run
    uv run --no-group x python PROJECT/srvmod
    node -r PROJECT/hook HOME/home.js
    node --import file://PROJECT/hook HOME/home.js
    node -e require('PROJECT/x')
    node --eval=require('PROJECT/x')
    node HOME/folder/app
    node ~/project/app
    cwd=PROJECT node app
    perl -IPROJECT -MEvil
    perl -I PROJECT HOME/x.pl
    perl -we do_'PROJECT/x'
    ruby -I PROJECT HOME/x.rb
    ruby -rPROJECT/x HOME/x.rb
    php -d auto_prepend_file=PROJECT/x HOME/x.php
    php -r include_'PROJECT/x';
    lua -e dofile('PROJECT/x')
    java -cp PROJECT Main
    java -cp /opt/x.jar:PROJECT Main
    java -javaagent:PROJECT/x.jar -jar /opt/x.jar
    java -jar PROJECT/x
    java @PROJECT/args
    dotnet run --project PROJECT
    dotnet PROJECT/srv
    python3 PROJECT/srvmod
    python3 -u PROJECT/srvmod
    python3 -W ignore PROJECT/srvmod
    python3 -m project.srv
    cwd=HOME python3 -m project
    cwd=PROJECT python3 -c import_sys;_sys.path.insert(0,'.')
    cwd=PROJECT python3 -c exec(open('./run').read())
    python3 -c import_sys;_sys.path.insert(0,'PROJECT');_import_x
    python3 -c import_os;_os.chdir(os.path.expanduser('~/project'))
    python3 -c exec(open(sys.argv[1]).read()) x PROJECT/run
    make -f PROJECT/Makefile2
    make -C PROJECT
    cargo run --manifest-path PROJECT/Cargo.toml
    poetry -C PROJECT run srv
    mvn -f PROJECT/pom.xml exec:java
    docker compose -f PROJECT/compose.yml run srv
    docker --config PROJECT run image
    docker run -v PROJECT/server.js:/x.js image
    deno task --cwd PROJECT x
    npx -y tsx watch PROJECT/app
    cwd=PROJECT docker compose run srv
    linked-python PROJECT/srvmod

    JDK_JAVA_OPTIONS=-javaagent:PROJECT/x.jar server
    _JAVA_OPTIONS=-Xbootclasspath/a:PROJECT server
    JAVA_TOOL_OPTIONS=-agentpath:PROJECT/x server
    JAVA_HOME=PROJECT server
    DOTNET_STARTUP_HOOKS=PROJECT/x server
    CORECLR_PROFILER_PATH=PROJECT/x server
    GCONV_PATH=PROJECT server
    npm_config_prefix=PROJECT server
    NPM_CONFIG_USERCONFIG=PROJECT/.npmrc server
    npm_config_node_options=--require=PROJECT/x server
    UV_PROJECT=PROJECT server
    UV_FIND_LINKS=https://x,PROJECT server
    PIP_INDEX_URL=file://PROJECT server
    PIP_CONFIG_FILE=PROJECT/pip.conf server
    PERL5OPT=-IPROJECT server
    PERL5LIB=PROJECT server
    RUBYOPT=-rPROJECT/x server
    RUBYLIB=PROJECT server
    GEM_PATH=PROJECT server
    BUNDLE_GEMFILE=PROJECT/Gemfile server
    LD_PRELOAD=PROJECT/x server
    LD_LIBRARY_PATH=/opt:PROJECT server
    LD_AUDIT=PROJECT/x server
    NODE_OPTIONS=--require=PROJECT/x server
    NODE_PATH=PROJECT server
    BASH_ENV=PROJECT/x server
    BASH_ENV=~/project/x server
    ENV=PROJECT/x server
    ZDOTDIR=PROJECT server
    PYTHONHOME=PROJECT server
    PYTHONSTARTUP=PROJECT/x server
    PYTHONPATH=$HOME/project server
    PYTHONPYCACHEPREFIX=PROJECT server
    GIT_SSH_COMMAND=sh_PROJECT/x server
    GIT_EXEC_PATH=PROJECT server
    GIT_CONFIG_GLOBAL=PROJECT/x server
    PHPRC=PROJECT server
    LUA_PATH=PROJECT/?.lua server
    CARGO_HOME=PROJECT server
    GOFLAGS=-overlay=PROJECT/x server
    MAKEFILES=PROJECT/x server
    OPENSSL_CONF=PROJECT/x server
    XDG_CONFIG_HOME=PROJECT server
    EDITOR=PROJECT/x server
    CHROME=PROJECT/server server
";
/// Each works on something in the project.
const DATA: &str = "
    npx -y @modelcontextprotocol/server-filesystem PROJECT
    npx -y @modelcontextprotocol/server-filesystem@latest PROJECT PROJECT/data.txt
    npx -y project PROJECT
    npx -y serve PROJECT
    npx --registry https://host/project -y pkg PROJECT
    npx -p @scope/pkg pkg --root PROJECT
    npx -y pkg --project PROJECT --directory=PROJECT
    npm exec -y pkg -- PROJECT
    bunx pkg PROJECT
    bun x pkg PROJECT
    pnpm dlx pkg PROJECT
    yarn dlx pkg PROJECT
    uvx mcp-server-git --repository PROJECT
    uvx --from project srv PROJECT
    uvx --from git+https://github.com/oraios/serena serena start --project PROJECT
    uvx --with mcp[cli] --python 3.12 pkg PROJECT
    uv --directory HOME/trusted run srv --root PROJECT
    uv tool run pkg PROJECT
    uv run --with mcp mcp run HOME/home.js PROJECT
    pipx run pkg PROJECT
    go run github.com/owner/name@latest PROJECT
    docker run -i --rm -v PROJECT:PROJECT image
    docker run -i --rm -v PROJECT:/work image --root /work
    docker run --mount type=bind,src=PROJECT,dst=PROJECT image PROJECT
    podman run -v PROJECT:/work image
    node HOME/home.js PROJECT
    node --no-warnings --enable-source-maps HOME/home.js PROJECT
    node --experimental-sqlite HOME/home.js PROJECT
    python3 -I -Bu HOME/srv.py PROJECT
    bash -l HOME/run.sh PROJECT
    perl -w HOME/x.pl PROJECT
    node -r dotenv/config HOME/home.js --root=PROJECT
    node --env-file=HOME/.env HOME/home.js PROJECT
    tsx HOME/home.ts PROJECT
    deno run -A --no-prompt --allow-read=/opt HOME/home.ts PROJECT
    bun run HOME/home.ts PROJECT
    python3 HOME/srv.py --root PROJECT
    python3 -u HOME/srv.py PROJECT
    python3 -m mcp_server_git --repository PROJECT
    python3 -um mcp_server_git --repository PROJECT
    python3 -c import_x
    java -Xmx1g -jar /opt/x.jar PROJECT
    java -cp /opt/x.jar com.x.Main PROJECT
    sh HOME/run.sh PROJECT
    sh -c cd_HOME/trusted_&&_python3_srv.py
    sh -c cd_PROJECT2_&&_python3_srv.py
    env A=b npx -y pkg
    wrapper --lang python PROJECT
    wrapper -- npx -y @modelcontextprotocol/server-filesystem PROJECT
    server PROJECT --root=PROJECT
    ROOT=PROJECT ALLOWED_DIRS=PROJECT:/tmp server
    NODE_ENV=project server
    GOOGLE_APPLICATION_CREDENTIALS=PROJECT/key.json server
    cwd=PROJECT python3 -c import_x;_x.run(\"tools/list\",_\"\".join([]),_.5)
    cwd=PROJECT sh -c echo_ran_>>_HOME/ran;_server
    cwd=PROJECT npx -y @scope/pkg@latest PROJECT
    cwd=PROJECT npx -y github:owner/name .
    cwd=PROJECT uvx --from git+https://github.com/owner/name srv .
    cwd=PROJECT docker run -v .:/work image
    cwd=PROJECT node HOME/home.js .
    cwd=PROJECT server .
";

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

fn make_home() -> TestHome {
    let test_home = TestHome::new();
    let home = test_home.folder.path().canonicalize().expect("there");
    std::fs::create_dir_all(home.join("project2")).expect("made");
    std::fs::create_dir_all(home.join("project/app")).expect("made");
    symlink(home.join("project"), home.join("folder")).expect("linked");
    symlink(home.join("bin/python3"), home.join("bin/linked-python")).expect("linked");
    test_home
}

/// THREAT[CFG-8]: no word that decides what runs names a directory of guests.
#[test]
fn cfg_8_a_line_that_runs_what_guests_write_is_refused() {
    let mut test_home = make_home();
    let is_refused = |test_home: &TestHome, line| {
        test_home.plan(line).is_err_and(|why| why.starts_with("is not started: "))
    };
    let passed: Vec<&str> =
        lines(CODE).into_iter().filter(|line| !is_refused(&test_home, line)).collect();
    assert!(passed.is_empty(), "{} passed:\n{}", passed.len(), passed.join("\n"));
    // The user's word, and a directory that guests cannot write.
    let allowed = std::mem::take(&mut test_home.settings.guest_paths.files.allowed);
    for line in lines(CODE) {
        test_home.accept(line);
    }
    test_home.settings.guest_paths.run_from.clone_from(&allowed);
    test_home.settings.guest_paths.files.allowed = allowed;
    for line in lines(CODE) {
        test_home.accept(line);
    }
}

/// THREAT[CFG-8]: what a server works on may lie there.
#[test]
fn cfg_8_data_of_guests_is_no_reason_to_refuse() {
    let test_home = make_home();
    let refused =
        lines(DATA).into_iter().filter_map(|line| Some((line, test_home.plan(line).err()?)));
    let refused: Vec<String> = refused.map(|(line, why)| format!("{line}: {why}")).collect();
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
}

/// THREAT[CFG-8]: names with spaces, written in every way that shells know.
#[test]
fn cfg_8_spaces_in_a_name_hide_nothing() {
    let mut test_home = make_home();
    let home = test_home.folder.path().canonicalize().expect("there");
    let spaced = home.join("my project");
    std::fs::create_dir(&spaced).expect("made");
    symlink(&spaced, home.join("my link")).expect("linked");
    test_home.settings.guest_paths.files.allowed = vec![spaced];
    for args in [
        ["-c", "cd 'HOME/my project' && x"],
        ["-c", "cd HOME/my\\ project && x"],
        ["-c", "cd \"HOME/my link\" && x"],
        ["-c", "cd \"$HOME/my project\"/sub && x"],
        ["HOME/my project/run", "x"],
        ["HOME/my link/run", "x"],
    ] {
        let args = args.map(|arg| fill(arg, home.to_str().expect("UTF-8")));
        let config =
            StdioConfig { command: "sh".to_owned(), args: args.to_vec(), ..StdioConfig::default() };
        let why = plan(&config, &[], &test_home.settings).expect_err("refused").to_string();
        assert!(why.contains(" lies in "), "{args:?}: {why}");
    }
}

/// What the user names may have spaces in its name, too.
#[test]
fn a_path_with_spaces_can_be_named() {
    let mut test_home = make_home();
    let home = test_home.folder.path().canonicalize().expect("there");
    let named = home.join("project/my server");
    std::fs::create_dir(&named).expect("made");
    std::fs::write(named.join("run.js"), "").expect("written");
    let args = vec![named.join("run.js").display().to_string()];
    let config = StdioConfig { command: "node".to_owned(), args, ..StdioConfig::default() };
    plan(&config, &[], &test_home.settings).expect_err("not named yet");
    test_home.settings.guest_paths.run_from = vec![named];
    plan(&config, &[], &test_home.settings).expect("named");
}

/// A line may only work on the directory; the user is told how to say so.
#[test]
fn a_refused_line_says_what_to_do() {
    let test_home = make_home();
    let why = test_home.plan("sh -c npx_-y_fs_PROJECT").expect_err("refused");
    assert_eq!(
        why,
        "is not started: HOME/project lies in HOME/project, where code may write, and sh may run \
         it; start the server without sh, or name the path with `files.run-from` in config.toml"
    );
}
