local lock = {status = status, take = take, extend_hold = extend_hold}
