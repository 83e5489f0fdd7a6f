// Command neighbour executes commands for a lock library, line by line. The protocol is described
// in neighbour_libraries/worker.rs. The argument names the library.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// library executes a command and returns its result, or an error with the reason.
type library interface {
	run(verb string, words []string) (string, error)
}

// libraries are the known libraries: the module of each, and its constructor.
var libraries = map[string]struct {
	module string
	begin  func([]*redis.Client) library
}{
	"redsync":   {"github.com/go-redsync/redsync/v4", newRedsync},
	"redislock": {"github.com/bsm/redislock", newRedislock},
}

// milliseconds parses a lease.
func milliseconds(word string) time.Duration {
	number, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

func version(path string) string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "unknown"
}

// read passes lines on. At the end of the input the test is gone, so the process exits even while
// it waits.
func read(lines chan<- string) {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		lines <- input.Text()
	}
	os.Exit(0)
}

// clients returns one client for each server.
func clients(urls []string) []*redis.Client {
	var all []*redis.Client
	for _, url := range urls {
		options, err := redis.ParseURL(url)
		if err != nil {
			panic(err)
		}
		client := redis.NewClient(options)
		if err := client.Ping(context.Background()).Err(); err != nil {
			panic(err)
		}
		all = append(all, client)
	}
	return all
}

func main() {
	named, known := libraries[os.Args[1]]
	if !known {
		panic("not a library: " + os.Args[1])
	}
	lines := make(chan string)
	go read(lines)
	does := named.begin(clients(strings.Fields(<-lines)))
	fmt.Println("ok", version(named.module))
	for line := range lines {
		words := strings.Split(line, " ")
		value, err := does.run(words[0], words[1:])
		if err != nil {
			fmt.Println("no", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println(strings.TrimSpace("ok " + value))
		}
	}
}
