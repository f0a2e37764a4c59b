"""The AWS CLI, read once: to read its code takes a second of a processor each time.

This program reads it and waits; each command is a process of its own, forked from here,
which has its own arguments and environment and ends by itself. One line of JSON in (argv,
env, stdout, stderr, timeout), one out: the exit code, null where it took too long.
"""

import gc
import json
import os
import signal
import sys
import traceback

import awscli.clidriver


def warm():
    """Loads what the CLI loads only when it is about to send something."""
    driver = awscli.clidriver.create_clidriver()
    for service in ("rds", "sts"):
        driver.session.create_client(service, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")


def child(command):
    own = {"AWS_DATA_PATH": os.environ["AWS_DATA_PATH"]}  # set by the CLI when its code is read
    os.environ.clear()
    os.environ.update(command["env"] | own)
    for descriptor, path in ((0, os.devnull), (1, command["stdout"]), (2, command["stderr"])):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, descriptor)
        os.close(opened)
    signal.alarm(command["timeout"])
    sys.argv = command["argv"]
    return awscli.clidriver.main()


def main():
    # The commands' own output must not be taken for an answer of this program.
    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    warm()
    gc.freeze()  # no collection in a child writes to what is shared with it
    for line in asked:
        command = json.loads(line)
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                code = child(command)
            except SystemExit as e:
                code = e.code if isinstance(e.code, int) else 1
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code or 0)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        answers.write(json.dumps(None if code == -signal.SIGALRM else code) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
