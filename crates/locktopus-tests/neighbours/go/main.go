// Command neighbour: redsync does what it is told, line by line: see neighbour_libraries/worker.rs for the conversation.
package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type worker struct {
	redsync *redsync.Redsync
	held    *redsync.Mutex
}

// mutex is a mutex of this name, which is the one held until another is taken.
func (w *worker) mutex(words []string, options ...redsync.Option) *redsync.Mutex {
	lease, err := strconv.Atoi(words[1])
	if err != nil {
		panic(err)
	}
	// By default it waits a twentieth of the lease for a server, which is little on a busy machine.
	options = append(options, redsync.WithExpiry(time.Duration(lease)*time.Millisecond), redsync.WithTimeoutFactor(1))
	w.held = w.redsync.NewMutex(words[0], options...)
	return w.held
}

func (w *worker) run(verb string, words []string) (string, error) {
	switch verb {
	case "acquire":
		patiently := []redsync.Option{redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(5 * time.Millisecond)}
		err := w.mutex(words, patiently...).Lock()
		return w.held.Value(), err
	case "acquire-by-default":
		err := w.mutex(words).Lock()
		return w.held.Value(), err
	case "try":
		err := w.mutex(words).TryLock()
		return w.held.Value(), err
	case "try-reviving":
		err := w.mutex(words, redsync.WithSetNXOnExtend()).TryLock()
		return w.held.Value(), err
	case "extend":
		return yes(w.held.Extend())
	case "release":
		return yes(w.held.Unlock())
	default:
		return "", fmt.Errorf("not a command: %s", verb)
	}
}

func yes(done bool, err error) (string, error) {
	if err == nil && !done {
		err = fmt.Errorf("not held")
	}
	return "", err
}

func version() string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if strings.HasSuffix(module.Path, "/redsync/v4") {
			return module.Version
		}
	}
	return "unknown"
}

// read passes lines on. When there will be no more, whoever wrote them is gone: the process ends, whatever it waits for.
func read(lines chan<- string) {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		lines <- input.Text()
	}
	os.Exit(0)
}

func main() {
	lines := make(chan string)
	go read(lines)
	options, err := redis.ParseURL(<-lines)
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(options)
	if err := client.Ping(context.Background()).Err(); err != nil {
		panic(err)
	}
	w := worker{redsync: redsync.New(goredis.NewPool(client))}
	fmt.Println("ok", version())
	for line := range lines {
		words := strings.Split(line, " ")
		value, err := w.run(words[0], words[1:])
		if err != nil {
			fmt.Println("no", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println(strings.TrimSpace("ok " + value))
		}
	}
}
