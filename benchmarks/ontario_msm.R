# Fit Ontario's visits with errors of inspection by msm, once, and print figures as "key value" lines.
#
# Rscript ontario_msm.R visits.csv
#
# The columns of visits are subj, year, state; errors of one rating either way, free probabilities of the first
# state. The start is .1 for all hazards and .05 for all errors; fnscale is of the order
# of -2 log L, as msm's help page advises. Seconds are those of the processor.
suppressPackageStartupMessages(library(msm))

visits <- read.csv(commandArgs(trailingOnly = TRUE)[1])
states <- max(visits$state)
hazards <- errors <- matrix(0, states, states)
hazards[cbind(1:(states - 1), 2:states)] <- 0.1
errors[abs(row(errors) - col(errors)) == 1] <- 0.05
clock <- proc.time()
fit <- msm(state ~ year, subject = subj, data = visits, qmatrix = hazards, ematrix = errors,
           est.initprobs = TRUE, hessian = FALSE, control = list(fnscale = 33000, maxit = 10000))
spent <- proc.time() - clock
figures <- c(minus2 = fit$minus2loglik, seconds = spent[["user.self"]] + spent[["sys.self"]],
             converged = as.numeric(fit$opt$convergence == 0))
cat(sprintf("%s %.12g\n", names(figures), figures), sep = "")
