local mutex = {status = status, take = take, renew = renew}
