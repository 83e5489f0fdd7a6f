local mutex = {status = status, take = take, extend_hold = extend_hold}
