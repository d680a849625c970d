cat "$1/model.txt" && echo scored > "$2/score.txt"
