local lock = {standing = standing, take = take, renew = renew}
