local lock = {status = status, take = take, renew = renew}
