local mutex = {standing = standing, take = take, renew = renew}
